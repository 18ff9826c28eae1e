// In the page: draws panels as Grafana lays them out, with the library that its time series are drawn with.

/** Grafana's grid: 24 columns, rows of 30 px, gaps of 8 px. */
const [COLUMNS, ROW, GAP, WIDTH] = [24, 30, 8, 1280];

const COLOURS = ["#56a64b", "#e0b400", "#3274d9", "#ff780a", "#e02f44", "#8f3bb8", "#1f9e9e", "#c15c17", "#7c2ea3", "#5195ce",
  "#890f02", "#447ebc", "#967302", "#2f575e", "#99440a"];
const NAMED = { green: "#56a64b", orange: "#ff780a", red: "#e02f44" };

const trimmed = (value, digits = 3) => String(Number(value.toPrecision(digits)));

/** A value as Grafana writes it in one of its units. */
const UNITS = {
  none: (value) => trimmed(value),
  percentunit: (value) => `${trimmed(value * 100)}%`,
  reqps: (value) => `${trimmed(value)} req/s`,
  cps: (value) => `${trimmed(value)} c/s`,
  bytes: (value) => (value < 2 ** 20 ? `${trimmed(value / 2 ** 10)} KiB` : `${trimmed(value / 2 ** 20)} MiB`),
  s(value) {
    if (value === 0) return "0 s";
    if (Math.abs(value) < 0.001) return `${trimmed(value * 1e6)} µs`;
    if (Math.abs(value) < 1) return `${trimmed(value * 1e3)} ms`;
    return Math.abs(value) < 120 ? `${trimmed(value)} s` : `${trimmed(value / 60)} min`;
  },
};

function element(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

function written(value, { unit }) {
  if (!UNITS[unit]) throw new Error(`how is ${unit} written?`);
  return UNITS[unit](value);
}

/** The colour of the highest step that a value reaches. */
function reached(value, { thresholds }) {
  return NAMED[thresholds.steps.findLast(({ value: from }) => from === null || value >= from).color];
}

/** The latest value of a line. */
function latest({ values }) {
  return values.findLast((value) => value !== null);
}

function drawStat(panel, box) {
  const { defaults } = panel.fieldConfig;
  const [line] = panel.lines;
  const isName = panel.options.textMode === "name";
  const value = element("div", isName ? "value long" : "value", isName ? line.name : written(latest(line), defaults));
  if (panel.options.colorMode === "background") value.style.background = reached(latest(line), defaults);
  else value.classList.add("plain");
  box.append(value);
}

function addLegend(lines, box) {
  const list = element("div", "legend");
  lines.forEach(({ name }, index) => {
    const item = element("span", "");
    const mark = element("i", "");
    mark.style.background = COLOURS[index % COLOURS.length];
    item.append(mark, name);
    list.append(item);
  });
  box.append(list);
}

/** Each line on top of those before it. */
function stacked(lines) {
  const sums = [];
  for (const { values } of lines) {
    const below = sums.at(-1);
    sums.push(values.map((value, index) => (value ?? 0) + (below?.[index] ?? 0)));
  }
  return sums;
}

function drawLines(panel, times, box) {
  const { defaults } = panel.fieldConfig;
  const isStacked = defaults.custom.stacking?.mode === "normal";
  const chart = element("div", "chart");
  box.append(chart);
  addLegend(panel.lines, box);
  const values = isStacked ? stacked(panel.lines) : panel.lines.map((line) => line.values);
  const most = Math.max(...values.flat());
  const fill = Math.round(2.55 * defaults.custom.fillOpacity * (isStacked ? 4 : 1)).toString(16).padStart(2, "0");
  const series = panel.lines.map((_, index) => {
    const stroke = COLOURS[index % COLOURS.length];
    return { stroke, width: 1.25, fill: stroke + fill, points: { show: false }, spanGaps: false };
  });
  const isBytes = defaults.unit === "bytes";
  const axis = { stroke: "#5b6167", font: "10px system-ui", grid: { stroke: "#e9edf2", width: 1 }, ticks: { show: false } };
  new uPlot({
    width: chart.clientWidth,
    height: chart.clientHeight,
    tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "Etc/UTC"),
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: [defaults.min ?? 0, defaults.max ?? (most > 0 ? most * 1.05 : 1)] } },
    series: [{}, ...series],
    bands: isStacked ? series.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : [],
    axes: [
      { ...axis, size: 22, values: "{HH}:{mm}:{ss}", space: 70 },
      { ...axis, size: 62, values: (_, ticks) => ticks.map((tick) => written(tick, defaults)), space: 24,
        ...(isBytes && { incrs: Array.from({ length: 40 }, (_, power) => 2 ** power) }) },
    ],
  }, [times, ...values], chart);
}

/** A bar for each line, coloured by what it was when. */
function drawBars(panel, box) {
  const bars = element("div", "bars");
  for (const { name, values } of panel.lines) {
    const canvas = Object.assign(document.createElement("canvas"), { width: values.length, height: 1 });
    const context = canvas.getContext("2d");
    values.forEach((value, index) => {
      if (value === null) return;
      context.fillStyle = reached(value, panel.fieldConfig.defaults);
      context.fillRect(index, 0, 1, 1);
    });
    bars.append(element("span", "", name), canvas);
  }
  box.append(bars);
}

function drawPanel(panel, times, box) {
  box.append(element("h2", "", panel.title));
  if (panel.type === "row") return;
  if (panel.lines.length === 0) box.append(element("p", "empty", "No data"));
  else if (panel.type === "stat") drawStat(panel, box);
  else if (panel.type === "timeseries") drawLines(panel, times, box);
  else if (panel.type === "state-timeline") drawBars(panel, box);
  else throw new Error(`${panel.title}: how is ${panel.type} drawn?`);
}

/** Draws all panels, and says how to cut the page in two, before a row. */
globalThis.draw = (panels, times) => {
  const main = document.querySelector("main");
  const top = (y) => GAP + y * (ROW + GAP);
  for (const panel of panels) {
    const { x, y, w, h } = panel.gridPos;
    const box = element("section", panel.type);
    const column = (WIDTH - GAP) / COLUMNS;
    box.style.cssText = `left: ${GAP + x * column}px; top: ${top(y)}px; width: ${w * column - GAP}px;
      height: ${h * (ROW + GAP) - GAP}px`;
    main.append(box);
    drawPanel(panel, times, box);
  }
  const bottom = top(Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h)));
  main.style.height = `${bottom}px`;
  const rows = panels.filter(({ type }) => type === "row").map(({ gridPos }) => top(gridPos.y) - GAP / 2);
  const cut = rows.reduce((best, at) => (Math.abs(at - bottom / 2) < Math.abs(best - bottom / 2) ? at : best));
  return [{ x: 0, y: 0, width: WIDTH, height: cut }, { x: 0, y: cut, width: WIDTH, height: bottom - cut }];
};
