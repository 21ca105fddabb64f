// The report's numbers and names. Names reach the page only through textContent.

const model = JSON.parse(document.getElementById("data").textContent);
const analysis = model.analysis;
const classes = model.classes;
const K = classes.length;
