// uPlot charts.

const charts = {};

const axes = () => [30, 44].map((size) => ({
  stroke: color("--muted"), font: "12px system-ui, sans-serif",
  grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, size,
}));

function chart(id, options, data) {
  const container = $(id);
  charts[id]?.destroy();
  container.replaceChildren();
  const plot = new uPlot({
    width: Math.max(container.clientWidth, 200), height: container.clientHeight || 300,
    legend: { show: false }, ...options,
  }, data, container);
  charts[id] = plot;
  return plot;
}
