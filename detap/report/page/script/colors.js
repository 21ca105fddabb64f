const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const BRIGHT = { "#0072b2": "#56b4e9", "#d55e00": "#f0975a", "#009e73": "#3fc79a" };
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
const shade = (value) => dark.matches ? BRIGHT[value] || value : value;

function ramp(part) {
  const ends = dark.matches ? [[27, 32, 38], [125, 182, 255]] : [[245, 247, 249], [10, 75, 160]];
  return ends[0].map((low, n) => Math.round(low + (ends[1][n] - low) * part));
}

function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((v) => v / 255 <= 0.04045 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

const shadeOf = (part) => `rgb(${ramp(Math.sqrt(part)).join(" ")})`;

// Black or white, whichever has more contrast: at least 4.58 to 1 on any ground.
function paint(node, part) {
  const ground = ramp(Math.sqrt(part)), light = luminance(ground);
  node.style.backgroundColor = shadeOf(part);
  node.style.color = 1.05 / (light + 0.05) > (light + 0.05) / 0.05 ? "#fff" : "#000";
}
