// The report's numbers and names. Names reach the page only through textContent.

const model = JSON.parse(document.getElementById("data").textContent);
const analysis = model.analysis;
const classes = model.classes;
const K = classes.length;

const ARRAYS = { u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, i4: Int32Array, f4: Float32Array };

// The values and arrays of a packed text; see packing.py.
async function unpacked(packed) {
  const deflated = atob(packed), bytes = new Uint8Array(deflated.length);
  for (let n = 0; n < bytes.length; n++) bytes[n] = deflated.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return JSON.parse(text, (_, value) => value && ARRAYS[value.type]
    ? new ARRAYS[value.type](buffer, 4 + length + value.start, value.length) : value);
}
