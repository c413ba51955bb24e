"use strict";
// One page, no library. Each view draws itself into <main> and returns a function that ends it.

const $ = (id) => document.getElementById(id);
const session = { csrf: null, user: null };
let leave = () => {};

/** Makes an element: el("td", { class: "number" }, "1"). */
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";
function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

let messageTimer = 0;
function say(text) {
  $("message").textContent = text;
  clearTimeout(messageTimer);
  messageTimer = setTimeout(() => { $("message").textContent = ""; }, 8000);
}

/** Sends a request to the server. Returns JSON, or throws the server's error message. */
async function api(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": session.csrf ?? "" },
    body: JSON.stringify(body),
  };
  const response = await fetch("/api" + path, options);
  if (response.status === 204) return null;
  const text = await response.text();
  let data;
  try { data = JSON.parse(text); } catch { data = { error: text.trim() || response.statusText }; }
  if (!response.ok) throw new Error(data.error ?? response.statusText);
  return data;
}

/** Maximum number of streams of all pages of this browser. Browsers allow six connections per server, and requests need some. */
const STREAMS = 4;

/** Runs `work` with true while this page holds a stream slot, or with false if all slots are used. */
async function withStream(work) {
  // Web Locks need a secure context. The browser releases them when a page is closed.
  if (!navigator.locks) { await work(true); return; }
  for (let at = 0; at < STREAMS; at += 1) {
    const take = async (lock) => { if (lock) await work(true); return lock !== null; };
    if (await navigator.locks.request(`stream-${at}`, { ifAvailable: true }, take)) return;
  }
  await work(false);
}

/** Waits until the page is visible, or until the signal is aborted. */
function seen(signal) {
  return new Promise((resume) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resume();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
    look();
  });
}

/** Streams values of nodes until the signal is aborted, and reconnects after errors. Hidden pages have no stream. */
async function live(nodes, interval, signal, onItems, onChanges) {
  while (!signal.aborted) {
    await seen(signal);
    if (signal.aborted) return;
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    signal.addEventListener("abort", stop);
    addEventListener("pagehide", stop);
    document.addEventListener("visibilitychange", stop);
    let isStream = true;
    try {
      await withStream(async (hasPlace) => {
        isStream = hasPlace;
        await receive({ nodes, interval, once: !hasPlace }, attempt.signal, onItems, onChanges);
      });
    } catch (error) {
      if (!attempt.signal.aborted) say("Live values: " + error.message);
    } finally {
      signal.removeEventListener("abort", stop);
      removeEventListener("pagehide", stop);
      document.removeEventListener("visibilitychange", stop);
    }
    if (!signal.aborted && !document.hidden) await new Promise((resume) => setTimeout(resume, isStream ? 2000 : 4000));
  }
}

/** Receives one stream until it ends. */
async function receive(wanted, signal, onItems, onChanges) {
  const response = await fetch("/api/live", {
    method: "POST", signal,
    headers: { "content-type": "application/json", "x-csrf-token": session.csrf ?? "" },
    body: JSON.stringify(wanted),
  });
  if (!response.ok) throw new Error((await response.json()).error);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const block = rest.slice(0, end);
      rest = rest.slice(end + 2);
      const data = block.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("");
      if (!data) continue;
      if (block.includes("event: items") || block.startsWith("event:items")) onItems(JSON.parse(data));
      else onChanges(JSON.parse(data));
    }
  }
}

const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 7 });
function shown(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return number.format(value);
  if (typeof value === "object") return value.Text ?? JSON.stringify(value);
  return String(value);
}
const clock = (millis) => millis ? new Date(millis).toLocaleTimeString([], { hour12: false }) : "–";
const since = (millis) => {
  const seconds = Math.max(0, Math.round((Date.now() - millis) / 1000));
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
};
function quality(status) {
  if (!status) return el("span", { class: "good" }, "Good");
  return el("span", { class: status.startsWith("Uncertain") ? "warn" : "bad" }, status);
}

/** The last values of a node, for a sparkline. */
class Trace {
  constructor(max = 120) { this.points = []; this.max = max; }
  add(value) {
    const numeric = typeof value === "boolean" ? Number(value) : value;
    if (typeof numeric !== "number" || !Number.isFinite(numeric)) return;
    this.points.push(numeric);
    if (this.points.length > this.max) this.points.shift();
  }
  path(width, height) {
    const points = this.points;
    if (points.length < 2) return "";
    let low = Infinity, high = -Infinity;
    for (const point of points) { low = Math.min(low, point); high = Math.max(high, point); }
    const span = high - low || 1;
    const step = width / (points.length - 1);
    return points.map((point, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)} ${(height - 1 - (point - low) / span * (height - 2)).toFixed(1)}`).join("");
  }
}

/** A live table of values with sparklines. */
function liveTable(items, columns = {}) {
  const rows = items.map((item) => {
    const curve = svg("path", { class: "curve" });
    const row = {
      trace: new Trace(), curve,
      value: el("td", { class: "value" }, "…"), status: el("td", {}), time: el("td", { class: "number hide-small" }),
      latest: null,
    };
    const spark = svg("svg", { class: "spark", viewBox: "0 0 112 26", preserveAspectRatio: "none", "aria-hidden": "true" }, curve);
    const name = el("th", { scope: "row" }, el("a", { href: "#plant/" + encodeURIComponent(item.id) }, item.name));
    const actions = el("td", {}, columns.actions?.(item));
    row.element = el("tr", {}, name, row.value, el("td", { class: "hide-small" }, spark), row.status, row.time, actions);
    return row;
  });
  const table = el("table", {},
    el("thead", {}, el("tr", {},
      el("th", { scope: "col" }, "Name"), el("th", { scope: "col" }, "Value"),
      el("th", { scope: "col", class: "hide-small" }, "Last minute"), el("th", { scope: "col" }, "Quality"),
      el("th", { scope: "col", class: "number hide-small" }, "Time"), el("th", { scope: "col" }, el("span", { class: "soft" }, "")))),
    el("tbody", {}, ...rows.map((row) => row.element)));
  const control = new AbortController();
  let isDue = false;
  // Only visible rows are drawn.
  const inView = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) target.row.isInView = isIntersecting;
    soon();
  }, { rootMargin: "200px" });
  for (const row of rows) { row.element.row = row; inView.observe(row.element); }
  const soon = () => { if (!isDue) { isDue = true; requestAnimationFrame(draw); } };
  const draw = () => {
    isDue = false;
    for (const row of rows) {
      if (!row.latest || !row.isInView) continue;
      const [value, status, time] = row.latest;
      row.latest = null;
      row.value.textContent = shown(value);
      row.value.title = row.value.textContent;
      row.status.replaceChildren(quality(status));
      row.time.textContent = clock(time);
      row.curve.setAttribute("d", row.trace.path(112, 26));
    }
  };
  if (items.length) {
    live(items.map((item) => item.id), 500, control.signal,
      (statuses) => statuses.forEach((status, i) => { if (status) { rows[i].value.textContent = "–"; rows[i].status.replaceChildren(quality(status)); } }),
      ({ time: first, changes }) => {
        for (const [position, value, status = null, later = 0] of changes) {
          const row = rows[position];
          row.trace.add(value);
          row.latest = [value, status, first + later];
        }
        soon();
      });
  }
  return { element: el("div", { class: "wide" }, table), end: () => { control.abort(); inView.disconnect(); } };
}

/** Number of nodes per folder that the tree shows before the user asks for more. */
const PART = 200;
const KINDS = { Object: "▣", Variable: "≈", Method: "ƒ", View: "◫", Type: "T" };

/** The tree of nodes, with keyboard control according to WAI-ARIA. */
function nodeTree(onSelect) {
  const tree = el("ul", { role: "tree", "aria-label": "Address space" });
  let selected = null;
  const item = (child, level) => {
    const hasChildren = child.class === "Object" || child.class === "View" || child.class === "Variable";
    const twist = el("span", { class: "twist", "aria-hidden": "true" }, child.class === "Object" ? "▸" : "");
    const node = el("li", { role: "treeitem", "aria-level": level, "aria-selected": "false", tabindex: "-1" },
      el("div", {}, twist, el("span", { class: "kind", "aria-hidden": "true" }, KINDS[child.class] ?? "?"), child.name));
    if (child.class === "Object" || child.class === "View") node.setAttribute("aria-expanded", "false");
    node.child = child;
    node.open = async () => {
      if (!hasChildren || node.getAttribute("aria-expanded") === "true") return;
      if (!node.group) {
        try {
          node.group = el("ul", { role: "group" });
          await more(node.group, child.id, level + 1);
          node.append(node.group);
        } catch (error) { node.group = null; say(error.message); return; }
      }
      node.group.hidden = false;
      if (child.class !== "Variable") { node.setAttribute("aria-expanded", "true"); twist.textContent = "▾"; }
    };
    node.close = () => {
      if (node.getAttribute("aria-expanded") !== "true") return false;
      node.group.hidden = true;
      node.setAttribute("aria-expanded", "false");
      twist.textContent = "▸";
      return true;
    };
    node.select = () => {
      if (selected) { selected.setAttribute("aria-selected", "false"); selected.tabIndex = -1; }
      selected = node;
      node.setAttribute("aria-selected", "true");
      node.tabIndex = 0;
      onSelect(child);
    };
    node.firstChild.addEventListener("click", async () => {
      node.select();
      node.focus();
      if (!node.close()) await node.open();
    });
    return node;
  };
  // Long lists are loaded in parts. The last item of each part loads the next one.
  const more = async (group, id, level, after = "") => {
    const part = await api(`/browse?node=${encodeURIComponent(id)}&limit=${PART}&keep=true${after}`);
    group.seen ??= new Set();
    const fresh = part.children.filter((child) => !child.isProperty && !group.seen.has(child.id));
    fresh.forEach((child) => group.seen.add(child.id));
    group.append(...fresh.map((child) => item(child, level)));
    if (!part.hasMore) return;
    const node = el("li", { role: "treeitem", "aria-level": level, "aria-selected": "false", tabindex: "-1" },
      el("div", { class: "soft" }, el("span", { class: "twist" }), "Show more"));
    node.select = node.open = async () => {
      const had = node.contains(document.activeElement);
      try {
        await more(group, id, level, `&from=${part.from}` + (part.next ? `&next=${part.next}` : ""));
        if (had && node.nextElementSibling) { node.nextElementSibling.tabIndex = 0; node.nextElementSibling.focus(); }
        node.remove();
      } catch (error) { say(error.message); }
    };
    node.close = () => false;
    node.firstChild.addEventListener("click", () => { node.focus(); node.open(); });
    group.append(node);
  };
  const visible = () => [...tree.querySelectorAll('[role="treeitem"]')].filter((node) => !node.closest("ul[hidden]"));
  tree.addEventListener("keydown", async (event) => {
    const node = event.target.closest('[role="treeitem"]');
    if (!node) return;
    const all = visible();
    const at = all.indexOf(node);
    const go = (to) => { if (to) { node.tabIndex = -1; to.tabIndex = 0; to.focus(); } };
    const keys = {
      ArrowDown: () => go(all[at + 1]),
      ArrowUp: () => go(all[at - 1]),
      Home: () => go(all[0]),
      End: () => go(all[all.length - 1]),
      ArrowRight: async () => { if (node.getAttribute("aria-expanded") === "true") go(visible()[at + 1]); else await node.open(); },
      ArrowLeft: () => { if (!node.close()) go(node.parentElement.closest('[role="treeitem"]')); },
      Enter: () => node.select(),
      " ": () => node.select(),
    };
    if (keys[event.key]) { event.preventDefault(); await keys[event.key](); }
  });
  const load = async () => {
    const { children } = await api("/browse");
    tree.replaceChildren(...children.map((child) => item(child, 1)));
    const first = tree.querySelector('[role="treeitem"]');
    if (first) first.tabIndex = 0;
    // Expand the plant, but not the Server object.
    for (const node of tree.children) {
      if (node.child.name !== "Server" && node.child.name !== "Aliases" && node.child.name !== "Locations" && node.child.class === "Object") { await node.open(); }
    }
  };
  return { element: tree, load };
}

/** A chart of values over time. */
function chart(values, from, to, space, onZoom) {
  // One unit per pixel, so that texts keep their size on small screens.
  const width = Math.max(280, space || 900), height = 300, left = 70, bottom = 28, top = 10, right = 12;
  const points = values.map(([value, status, time]) => [time, typeof value === "boolean" ? Number(value) : value, status]);
  const numeric = points.filter(([, value, status]) => typeof value === "number" && Number.isFinite(value) && !(status ?? "").startsWith("Bad"));
  let low = Infinity, high = -Infinity;
  for (const [, value] of numeric) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!numeric.length) { low = 0; high = 1; }
  if (low === high) { low -= 1; high += 1; }
  const x = (time) => left + (time - from) / (to - from) * (width - left - right);
  const y = (value) => height - bottom - (value - low) / (high - low) * (height - bottom - top);
  let path = "", isDown = false;
  for (const [time, value, status] of points) {
    if (typeof value !== "number" || !Number.isFinite(value) || (status ?? "").startsWith("Bad")) { isDown = false; continue; }
    if (time < from || time > to) continue;
    path += `${isDown ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
    isDown = true;
  }
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${numeric.length} values between ${number.format(low)} and ${number.format(high)}` });
  for (let i = 0; i <= 4; i += 1) {
    const value = low + (high - low) * i / 4;
    drawing.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    const text = svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" });
    text.textContent = number.format(Number(value.toPrecision(5)));
    drawing.append(text);
    const time = from + (to - from) * i / 4;
    if (width < 500 && i % 2) continue;
    const label = svg("text", { x: x(time), y: height - 8, "text-anchor": i === 0 ? "start" : i === 4 ? "end" : "middle" });
    label.textContent = new Date(time).toLocaleTimeString([], { hour12: false });
    drawing.append(label);
  }
  drawing.append(svg("path", { class: "curve", d: path }));
  const at = (event) => {
    const box = drawing.getBoundingClientRect();
    const inside = (event.clientX - box.left) / box.width * width;
    return from + (inside - left) / (width - left - right) * (to - from);
  };
  let down = null;
  drawing.addEventListener("pointerdown", (event) => { down = at(event); });
  drawing.addEventListener("pointerup", (event) => {
    const up = at(event);
    if (down !== null && Math.abs(up - down) > (to - from) / 100) onZoom(Math.min(down, up), Math.max(down, up));
    down = null;
  });
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    const middle = at(event), factor = event.deltaY < 0 ? 0.6 : 1.6;
    onZoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }, { passive: false });
  return drawing;
}

/** The history of a node with selectable time spans. */
function trend(node) {
  const figure = el("div", { class: "figure", tabindex: "0", role: "group", "aria-label": "Chart. Plus and minus zoom, the arrow keys move." });
  const note = el("p", { class: "soft", role: "status" });
  let to = Date.now(), from = to - 3600e3, ended = false, turn = 0;
  const load = async () => {
    const mine = turn += 1, start = from, end = to;
    try {
      const { values, isRaw } = await api(`/history?node=${encodeURIComponent(node)}&from=${Math.round(start)}&to=${Math.round(end)}&points=600`);
      // Answers to earlier requests may arrive later.
      if (ended || mine !== turn) return;
      figure.replaceChildren(chart(values, start, end, figure.clientWidth, show));
      const moment = (time) => el("time", { datetime: new Date(time).toISOString() }, new Date(time).toLocaleString([], { hour12: false }));
      note.replaceChildren(moment(start), " to ", moment(end), isRaw ? `: ${values.length} recorded values.` : ": averages, because there are too many values to show.",
        " Drag, turn the wheel, or use the buttons or the keys + − ← → to zoom and move.");
    } catch (error) {
      if (ended || mine !== turn) return;
      figure.replaceChildren();
      note.textContent = error.message;
    }
  };
  /** Shows a time span of 1 s to 100 years. */
  const show = (start, end) => {
    const middle = (start + end) / 2, half = Math.min(Math.max(end - start, 1e3), 3.2e12) / 2;
    from = Math.max(0, middle - half);
    to = from + 2 * half;
    load();
  };
  const zoom = (factor) => show((from + to - (to - from) * factor) / 2, (from + to + (to - from) * factor) / 2);
  const move = (share) => show(from + (to - from) * share, to + (to - from) * share);
  const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25) };
  figure.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  const button = (name, act) => el("button", { type: "button", class: "quiet small", onclick: act }, name);
  const span = (name, millis) => button(name, () => { const now = Date.now(); show(now - millis, now); });
  load();
  return {
    element: el("div", {}, el("div", { class: "row" }, span("5 min", 300e3), span("1 h", 3600e3), span("1 d", 86400e3), span("30 d", 30 * 86400e3),
      button("Zoom in", keys["+"]), button("Zoom out", keys["-"]), button("Earlier", keys.ArrowLeft), button("Later", keys.ArrowRight)), figure, note),
    end: () => { ended = true; },
  };
}

const VIEWS = {
  overview: { name: "Overview", draw: overview },
  plant: { name: "Plant", draw: plant },
  alarms: { name: "Alarms", draw: alarms },
  sources: { name: "Sources", draw: sources, needs: "hasSources" },
  clients: { name: "Clients", draw: clients },
  pubsub: { name: "PubSub", draw: pubsub },
  certificates: { name: "Certificates", draw: certificates, needs: "isAdministrator" },
  log: { name: "Log", draw: log, needs: "isAdministrator" },
};

const STATES = ["Running", "Failed", "No configuration", "Suspended", "Shutdown", "Test", "Communication fault", "Unknown"];

/** The state of the server, beside its name on every page. */
function showState(server) {
  $("state").textContent = STATES[server.state] ?? "connected";
  $("state").className = "badge " + (server.state === 0 ? "good" : "warn");
}

/** Calls a function periodically until it is ended. */
function every(millis, call) {
  let ended = false;
  const run = async () => {
    if (ended) return;
    try { await call(() => ended); } catch (error) { if (!ended) say(error.message); }
    if (!ended) setTimeout(run, millis);
  };
  run();
  return () => { ended = true; };
}

function overview(main) {
  const cards = el("div", { class: "cards" });
  main.append(el("h1", {}, "Overview"), cards);
  const values = el("div", { class: "card" });
  main.append(values);
  let table = null, isLeft = false;
  (async () => {
    const found = [];
    const visit = async (id, path, depth) => {
      if (isLeft || found.length >= 30 || depth > 3) return;
      const { children } = await api("/browse?limit=100" + (id ? "&node=" + encodeURIComponent(id) : ""));
      for (const child of children) {
        if (found.length >= 30) return;
        if (child.class === "Variable" && !child.isProperty) found.push({ id: child.id, name: [...path, child.name].slice(-2).join(" / ") });
        else if (child.class === "Object" && !["Server", "Aliases", "Locations", "Gateway"].includes(child.name)) await visit(child.id, [...path, child.name], depth + 1);
      }
    };
    try { await visit(null, [], 0); } catch (error) { if (!isLeft) say(error.message); }
    // Without this check, a page that was left would keep its stream.
    if (isLeft) return;
    values.replaceChildren(el("h2", {}, "Live values"));
    if (found.length) { table = liveTable(found); values.append(table.element); }
    else values.append(el("p", { class: "soft" }, "No variables to show. Log on, or add a source."));
  })();
  const end = every(2000, async () => {
    const server = await api("/server");
    const card = (value, name) => el("div", { class: "card" }, el("b", {}, value ?? "–"), el("small", {}, name));
    cards.replaceChildren(
      card(STATES[server.state] ?? "–", "State"),
      card(server.startTime ? since(server.startTime) : "–", "Running for"),
      card(number.format(server.nodes), "Nodes"),
      card(shown(server.sessionCount), "Sessions"),
      card(shown(server.subscriptionCount), "Subscriptions"),
      card(number.format(server.monitoredItems), "Monitored items"),
      card(number.format(server.connections), "Connections"),
      card(shown(server.rejectedSessions), "Rejected sessions"),
      ...historyCards(server.history, card),
      ...headroomCards(server.headroom, card));
    showState(server);
  });
  return () => { isLeft = true; end(); table?.end(); };
}

const percent = (cores) => `${number.format(Number((cores * 100).toPrecision(3)))} %`;

/** What an operator must know about the recording of the history. */
function historyCards(history, card) {
  const cards = [];
  if (history && history.problem !== null) cards.push(card(`${number.format(history.queued)} waiting`, `The history cannot be stored${history.problem && ": " + history.problem}`));
  if (history?.lost) cards.push(card(number.format(history.lost), "Values of the history lost"));
  return cards;
}

/** Used CPU and remaining capacity of a calibrated server. */
function headroomCards(headroom, card) {
  if (!headroom) return [];
  const { predicted, actual, limit } = headroom;
  const many = (count) => count > 1e9 ? "–" : number.format(Math.floor(count));
  const cards = [
    card(actual === null ? "–" : percent(actual), "CPU of a core, last second"),
    card(`${percent(predicted)} of ${percent(limit)}`, "Predicted CPU, and the limit"),
    card(many(headroom.remainingValues), "Remaining values per second"),
    card(many(headroom.remainingSessions), "Remaining sessions like these"),
  ];
  if (headroom.refused) cards.push(card(number.format(headroom.refused), "Items refused for lack of CPU"));
  return cards;
}

function plant(main, argument) {
  const detail = el("div", { class: "card" }, el("p", { class: "soft" }, "Choose a node."));
  let parts = [];
  // Shows only the latest selection, whatever the order of the responses, and nothing after the page is left.
  let turn = 0;
  const clear = () => { turn += 1; parts.forEach((part) => part.end()); parts = []; };
  const show = async (id) => {
    clear();
    const mine = turn;
    try {
      const node = await api("/node?node=" + encodeURIComponent(id));
      const children = (await api("/browse?node=" + encodeURIComponent(id))).children;
      if (mine !== turn) return;
      const facts = el("dl", {});
      const fact = (name, value) => { if (value !== null && value !== undefined && value !== "") facts.append(el("dt", {}, name), el("dd", {}, String(value))); };
      fact("Node id", node.id);
      fact("Description", node.description);
      fact("Data type", node.dataType);
      fact("Unit", node.unit);
      if (node.low !== null) fact("Range", `${number.format(node.low)} … ${number.format(node.high)}`);
      detail.replaceChildren(el("h2", {}, node.name ?? node.id), facts);
      if (node.class === "Variable") {
        if (node.isReadable) { const table = liveTable([{ id: node.id, name: node.name }]); parts.push(table); detail.append(table.element); }
        if (node.isWritable) detail.append(writer(node));
        if (node.hasHistory) { const part = trend(node.id); parts.push(part); detail.append(el("h2", {}, "History"), part.element); }
      }
      const variables = children.filter((child) => child.class === "Variable" && !child.isProperty);
      if (variables.length) { const table = liveTable(variables); parts.push(table); detail.append(table.element); }
    } catch (error) { if (mine === turn) detail.replaceChildren(el("p", { class: "error" }, error.message)); }
  };
  const tree = nodeTree((child) => { history.replaceState(null, "", "#plant/" + encodeURIComponent(child.id)); show(child.id); });
  main.append(el("h1", {}, "Plant"), el("div", { class: "split" }, el("div", { class: "card scroll" }, tree.element), detail));
  tree.load().catch((error) => say(error.message));
  if (argument) show(argument);
  return clear;
}

function writer(node) {
  const input = el("input", { id: "write-value", "aria-label": "New value", autocomplete: "off", size: 16 });
  const form = el("form", { class: "row" }, input, node.unit ? el("span", { class: "soft" }, node.unit) : null, el("button", { type: "submit" }, "Write"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try { await api("/write", { node: node.id, value: input.value }); say("Written."); input.value = ""; }
    catch (error) { say(error.message); }
  });
  return form;
}

/** Asks for a comment, for the time of shelving, or only whether to go on. Returns null if cancelled. */
function ask(title, verb, times, only) {
  return new Promise((resolve) => {
    const comment = el("input", { id: "ask-comment", maxlength: 1000, autocomplete: "off" });
    const time = el("select", { id: "ask-time" }, ...[["5 minutes", 5], ["30 minutes", 30], ["2 hours", 120], ["8 hours", 480], ["until it is normal", ""]]
      .map(([name, value]) => el("option", { value }, name)));
    const fields = only ? [] : times ? [el("label", { for: "ask-time" }, "How long"), time] : [el("label", { for: "ask-comment" }, "Comment"), comment];
    const dialog = el("dialog", { "aria-labelledby": "ask-title" }, el("form", { method: "dialog" }, el("h2", { id: "ask-title" }, title), ...fields,
      el("div", { class: "row end" }, el("button", { type: "button", class: "quiet", onclick: () => dialog.close("cancel") }, "Cancel"),
        el("button", { type: "submit", value: "ok" }, verb))));
    dialog.addEventListener("close", () => {
      const isWanted = dialog.returnValue === "ok";
      dialog.remove();
      resolve(isWanted ? { comment: comment.value, minutes: times && time.value ? Number(time.value) : null } : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

function alarms(main) {
  const note = el("p", { class: "soft", role: "status" });
  const head = (name, small, isNumber) => el("th", { scope: "col", class: (isNumber ? "number" : "") + (small ? " hide-small" : "") }, name);
  const rows = el("tbody", {});
  const table = el("table", { class: "stack" }, el("thead", {}, el("tr", {}, head("Severity", false, true), head("Alarm"), head("State"), head("Since", false, true),
    head("Comment", true), head("Actions"))), rows);
  main.append(el("h1", {}, "Alarms"), note, el("div", { class: "card wide" }, table));
  const known = new Map();
  const act = async (alarm, action, title, verb, times) => {
    const answer = title ? await ask(`${title}: ${alarm.sourceName} ${alarm.name}`, verb, times) : { comment: "", minutes: null };
    if (!answer) return;
    try { await api("/alarms", { action, id: alarm.id, event: alarm.event, ...answer }); await load(() => false); }
    catch (error) { say(error.message); }
  };
  const respond = async (alarm, response, name) => {
    if (!await ask(alarm.dialog.prompt, name, false, true)) return;
    try { await api("/alarms", { action: "respond", id: alarm.id, response }); await load(() => false); }
    catch (error) { say(error.message); }
  };
  const button = (alarm, action, name, title, times) => el("button", { type: "button", class: "small quiet", "data-action": action,
    "aria-label": `${name} ${alarm.sourceName} ${alarm.name}`, onclick: () => act(alarm, action, title, name, times) }, name);
  const row = (alarm) => {
    const states = (alarm.dialog ? [
      el("span", { class: "warn" }, "Waits for a response"),
      alarm.suppressed ? el("span", { class: "soft" }, "Suppressed") : null,
    ] : [
      alarm.active ? el("span", { class: "bad active" }, "Active") : el("span", { class: "good" }, "Normal"),
      alarm.acked ? null : el("span", { class: "warn" }, "Not acknowledged"),
      alarm.confirmed ? null : el("span", { class: "warn" }, "Not confirmed"),
      alarm.latched ? el("span", { class: "warn" }, "Latched") : null,
      alarm.shelving ? el("span", { class: "soft" }, "Shelved " + alarm.shelving) : null,
      alarm.suppressed ? el("span", { class: "soft" }, "Suppressed") : null,
    ]).filter((one) => one).map((one) => el("div", {}, one));
    const actions = alarm.dialog ? [
      ...alarm.dialog.responses.map((name, at) => el("button", { type: "button", class: "small quiet", "data-action": `respond-${at}`,
        "aria-label": `${name}: ${alarm.dialog.prompt}`, onclick: () => respond(alarm, at, name) }, name)),
      button(alarm, "comment", "Comment", "Comment"),
    ] : [
      alarm.acked ? null : button(alarm, "acknowledge", "Acknowledge", "Acknowledge"),
      alarm.acked && !alarm.confirmed ? button(alarm, "confirm", "Confirm", "Confirm") : null,
      button(alarm, "comment", "Comment", "Comment"),
      alarm.branch ? null : alarm.shelving ? button(alarm, "unshelve", "Unshelve", null) : button(alarm, "shelve", "Shelve", "Shelve", true),
    ];
    return el("tr", {},
      el("td", { class: "number " + (alarm.severity >= 600 ? "bad" : alarm.severity >= 300 ? "warn" : "") }, String(alarm.severity)),
      el("th", { scope: "row" }, alarm.sourceName, " ", alarm.name, alarm.branch ? ` (earlier state ${alarm.branch})` : "", el("br"), el("small", { class: "soft" }, alarm.message)),
      el("td", { class: "states" }, ...states), el("td", { class: "number", title: clock(alarm.since) }, since(alarm.since)),
      el("td", { class: "soft hide-small" }, alarm.comment ? `${alarm.comment}${alarm.user ? " – " + alarm.user : ""}` : ""),
      el("td", {}, el("div", { class: "row actions" }, ...actions.filter((one) => one))));
  };
  const load = async (isEnded) => {
    const { alarms: all, count } = await api("/alarms");
    if (isEnded()) return;
    // Unchanged rows are kept, so that the focus is kept.
    const focused = document.activeElement?.closest?.("tr");
    const focusKey = [...known].find(([, one]) => one.element === focused)?.[0];
    const action = document.activeElement?.dataset?.action;
    const keys = new Set();
    const elements = all.map((alarm) => {
      const key = `${alarm.id} ${alarm.branch}`;
      keys.add(key);
      const text = JSON.stringify(alarm) + since(alarm.since);
      let one = known.get(key);
      if (one?.text !== text) { one = { text, element: row(alarm) }; known.set(key, one); }
      return one.element;
    });
    for (const key of [...known.keys()]) if (!keys.has(key)) known.delete(key);
    if (elements.length !== rows.children.length || elements.some((one, i) => rows.children[i] !== one)) {
      rows.replaceChildren(...elements);
      if (focusKey && action) {
        const again = known.get(focusKey)?.element;
        (again?.querySelector(`[data-action="${action}"]`) ?? again?.querySelector("button"))?.focus();
      }
    }
    const open = all.filter((alarm) => !alarm.acked).length;
    const questions = all.filter((alarm) => alarm.dialog).length;
    const waiting = questions ? `, ${questions} ${questions === 1 ? "question waits" : "questions wait"} for a response` : "";
    note.textContent = !count ? "No alarms to show." : `${count - questions} ${count - questions === 1 ? "alarm" : "alarms"}, ${open} not acknowledged` + waiting + (count > all.length ? `; the ${all.length} most urgent are shown` : "");
  };
  return every(2000, load);
}

function sources(main) {
  const body = el("div", { class: "card wide" });
  const sinks = el("div", {});
  main.append(el("h1", {}, "Sources"), body, sinks);
  let before = null;
  /** A table that phones show as a list, each cell with the name of its column. A column has a name, and whether it has numbers. */
  const table = (columns, rows) => el("table", { class: "stack facts" },
    el("thead", {}, el("tr", {}, ...columns.map(([name, isNumber]) => el("th", { scope: "col", class: isNumber ? "number" : "" }, name)))),
    el("tbody", {}, ...rows.map(([first, ...cells]) => el("tr", {}, el("th", { scope: "row" }, ...first), ...cells.map((cell, at) => {
      const [name, isNumber] = columns[at + 1];
      const isError = name === "Last error";
      return el("td", { class: (isNumber ? "number" : "") + (isError ? "soft wide-cell" : "") + (isError && !cell ? " empty" : ""), "data-name": name },
        typeof cell === "number" ? number.format(cell) : cell);
    })))));
  const named = (one) => [one.name, el("br"), el("small", { class: "soft" }, one.description)];
  return every(2000, async () => {
    const { sources: all, destinations } = await api("/sources");
    const now = Date.now();
    /** The rate per second since the previous call. */
    const rate = (list, one, count) => {
      const old = before?.[list].find((other) => other.name === one.name);
      if (!old || one[count] < old[count]) return "–";
      return number.format(Number(((one[count] - old[count]) * 1000 / (now - before.at)).toPrecision(3)));
    };
    const state = (source) => {
      if (!source.isConnected) return el("span", { class: "bad" }, "Not connected");
      if (source.lost) return el("span", { class: "bad" }, `${source.lost} without values`);
      if (source.incomplete) return el("span", { class: "warn", title: source.incomplete }, "Incomplete");
      return source.uncertain ? el("span", { class: "warn" }, `${source.uncertain} late`) : el("span", { class: "good" }, "Good");
    };
    body.replaceChildren(table(
      [["Source"], ["State"], ["Tags", true], ["Values per second", true], ["Errors", true], ["Dropped", true], ["Invalid", true], ["Late", true],
        ["Write errors", true], ["Last answer", true], ["Last error"]],
      all.map((source) => [named(source), state(source), source.tags, rate("sources", source, "values"), source.errors, source.dropped, source.invalid,
        source.missed, source.writeErrors, source.lastAnswer ? since(source.lastAnswer) : "–", source.incomplete ?? source.lastError ?? ""])));
    const sinkState = (one) => one.loss ? el("span", { class: "bad" }, "Losing values") : one.isConnected ? el("span", { class: "good" }, "Good")
      : one.lastSent || one.lastError ? el("span", { class: "bad" }, "Not connected") : el("span", { class: "soft" }, "Waiting");
    const fill = (one) => {
      const share = one.queueBytesMax ? one.queuedBytes / one.queueBytesMax : 0;
      return el("span", { class: share > 0.9 ? "bad" : share > 0.5 ? "warn" : "" }, share > 0 && share < 0.001 ? "< 0.1 %" : percent(share));
    };
    sinks.replaceChildren(...(destinations.length ? [el("h1", {}, "Destinations"), el("div", { class: "card wide" }, table(
      [["Destination"], ["State"], ["Values waiting", true], ["Queue full", true], ["Parked", true], ["Oldest", true], ["Values per second", true],
        ["Sent", true], ["Dropped", true], ["Refused", true], ["Errors", true], ["Last error"]],
      destinations.map((one) => [named(one), sinkState(one), one.queued, fill(one), one.parked, one.oldest ? since(one.oldest) : "–",
        rate("destinations", one, "sent"), one.sent, one.dropped, one.refused, one.errors, one.loss ?? one.lastError ?? ""])))] : []));
    before = { sources: all, destinations, at: now };
  });
}

function clients(main) {
  const body = el("div", { class: "card wide" });
  const note = el("p", { class: "soft" });
  main.append(el("h1", {}, "Clients"), body, note);
  // The previous counts, by session and subscription.
  let before = null;
  return every(2000, async () => {
    const { sessions, headroom } = await api("/server");
    if (!sessions) { body.replaceChildren(el("p", { class: "soft" }, "You have no permission to see the sessions. Log on as another user.")); return; }
    const now = { at: Date.now(), counts: new Map() };
    const seconds = before ? (now.at - before.at) / 1000 : 0;
    /** The rate per second since the previous call. */
    const rate = (key, count) => {
      now.counts.set(key, count);
      const old = before?.counts.get(key);
      return old === undefined || count < old ? null : (count - old) / seconds;
    };
    const perSecond = (value) => value === null ? "–" : number.format(Number(value.toPrecision(3)));
    const subscription = (sub) => {
      const values = rate(`values ${sub.id}`, sub.notifications), messages = rate(`messages ${sub.id}`, sub.messages);
      const cost = headroom && values !== null && messages !== null ? values * headroom.valuePrice + messages * headroom.messagePrice : null;
      const element = el("div", { class: sub.lost ? "warn" : "" },
        `${number.format(sub.interval)} ms · ${sub.items} items · ${perSecond(values)}/s${sub.lost ? ` · ${sub.lost} lost` : ""}${sub.late ? ` · ${sub.late} late` : ""}`
        + (cost === null ? "" : ` · ${percent(cost)} CPU`));
      return { element, values, cost };
    };
    const row = (s) => {
      const subs = s.subscriptions.map(subscription);
      const sum = (what) => subs.some((sub) => sub[what] === null) ? null : subs.reduce((all, sub) => all + sub[what], 0);
      const [values, cost] = [sum("values"), sum("cost")];
      return el("tr", {},
        el("th", { scope: "row" }, s.name, el("br"), el("small", { class: "soft" }, s.application || s.applicationUri)),
        el("td", { class: "number" }, since(s.connected)), el("td", { class: "number" }, number.format(s.requests)),
        el("td", { class: "number" }, number.format(s.errors)), el("td", { class: "number" }, number.format(s.items)),
        el("td", { class: "number" }, perSecond(values)), headroom ? el("td", { class: "number" }, cost === null ? "–" : percent(cost)) : null,
        el("td", {}, ...subs.map((sub) => sub.element)));
    };
    const head = (name, isNumber) => el("th", { scope: "col", class: isNumber ? "number" : "" }, name);
    body.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, head("Session"), head("Connected", true), head("Requests", true), head("Errors", true),
      head("Items", true), head("Values per second", true), headroom ? head("CPU of a core", true) : null, head("Subscriptions"))), el("tbody", {}, ...sessions.map(row))));
    note.textContent = headroom ? "CPU: estimated from the values and messages of the last two seconds and the calibration."
      : "To see the CPU cost of subscriptions, calibrate the server (taktwerk lab calibrate).";
    before = now;
  });
}

function pubsub(main) {
  const note = el("p", { class: "soft", role: "status" });
  const rows = el("tbody", {});
  const head = (name) => el("th", { scope: "col" }, name);
  const table = el("table", {}, el("thead", {}, el("tr", {}, head("Component"), head("Kind"), head("State"))), rows);
  main.append(el("h1", {}, "PubSub"), note, el("div", { class: "card wide" }, table));
  const names = { Connection: "Connection", WriterGroup: "Writer group", ReaderGroup: "Reader group", DataSetWriter: "DataSet writer", DataSetReader: "DataSet reader" };
  const classes = { Operational: "good", Error: "bad", Disabled: "soft" };
  const row = (one) => el("tr", {},
    el("th", { scope: "row", style: `padding-left: ${one.level * 1.2}em` }, el("a", { href: "#plant/" + encodeURIComponent(one.id) }, one.name)),
    el("td", {}, names[one.kind] ?? one.kind), el("td", {}, el("span", { class: classes[one.state] ?? "warn" }, one.state ?? "–")));
  return every(4000, async () => {
    const { state, components, isCut } = await api("/pubsub");
    rows.replaceChildren(...components.map(row));
    table.hidden = !components.length;
    note.textContent = components.length ? `PubSub is ${state ?? "in a state that you have no permission to see"}. ${components.length}${isCut ? " of more" : ""} components.`
      : "No PubSub to show: the server has none, or you have no permission to browse it.";
  });
}

function certificates(main) {
  const body = el("div", { class: "card" });
  main.append(el("h1", {}, "Rejected certificates"), body);
  const load = async () => {
    const { rejected, mayTrust, hasCertificates } = await api("/certificates");
    if (!hasCertificates) { body.replaceChildren(el("p", {}, "This server has no certificates.")); return; }
    if (!rejected.length) { body.replaceChildren(el("p", {}, "No application was rejected.")); return; }
    body.replaceChildren(el("p", {}, "Compare the fingerprint with the one that the application or device shows. Then type its first 8 characters."),
      ...rejected.map((one) => {
        const input = el("input", { "aria-label": "First characters of the fingerprint", maxlength: 60, autocomplete: "off", size: 12 });
        const form = el("form", { class: "row" }, input, el("button", { type: "submit", disabled: !mayTrust }, "Trust"));
        form.addEventListener("submit", async (event) => {
          event.preventDefault();
          try { await api("/certificates/trust", { thumbprint: one.thumbprint, typed: input.value }); say("Trusted."); await load(); }
          catch (error) { say(error.message); }
        });
        return el("section", {}, el("h2", {}, one.subject), el("dl", {},
          el("dt", {}, "Fingerprint (SHA-1)"), el("dd", {}, one.thumbprint), el("dt", {}, "Application"), el("dd", {}, one.applicationUri ?? "–"),
          el("dt", {}, "Issuer"), el("dd", {}, one.issuer), el("dt", {}, "Valid"), el("dd", {}, `${one.notBefore} … ${one.notAfter}`),
          el("dt", {}, "Came from"), el("dd", {}, one.address ?? "–")), form);
      }));
  };
  load().catch((error) => body.replaceChildren(el("p", { class: "error" }, error.message)));
  return () => {};
}

function log(main) {
  const lines = el("pre", { class: "log", tabindex: "0" });
  main.append(el("h1", {}, "Log"), el("div", { class: "card scroll" }, lines));
  return every(2000, async () => {
    const all = (await api("/log")).lines;
    const classes = { ERROR: "bad", WARN: "warn" };
    lines.replaceChildren(...all.reverse().map((line) => el("div", { class: classes[line.level] ?? "" }, `${clock(line.time)} ${line.level.padEnd(5)} ${line.text}`)));
    if (!all.length) lines.textContent = "Nothing yet.";
  });
}

function route() {
  const [page, argument] = location.hash.slice(1).split("/");
  const view = VIEWS[page] ?? VIEWS.overview;
  leave();
  leave = () => {};
  const main = $("main");
  main.replaceChildren();
  for (const link of $("pages").querySelectorAll("a")) {
    if (link.hash.slice(1) === (VIEWS[page] ? page : "overview")) { link.setAttribute("aria-current", "page"); link.scrollIntoView({ block: "nearest", inline: "nearest" }); } else link.removeAttribute("aria-current");
  }
  document.title = `${view.name} – ${$("application").textContent}`;
  if (!session.isOpen) {
    main.append(el("div", { class: "card" }, el("h1", {}, "Log on"), el("p", {}, "Log on as a user of the server to see the dashboard."), el("button", { type: "button", onclick: () => $("login").showModal() }, "Log on")));
    return;
  }
  if (view.needs && !session[view.needs]) {
    main.append(el("h1", {}, view.name), el("div", { class: "card" }, el("p", { class: "soft" }, "This page requires a user with the role SecurityAdmin or ConfigureAdmin.")));
    return;
  }
  leave = view.draw(main, argument ? decodeURIComponent(argument) : null) ?? (() => {});
}

let loads = 0;
async function load() {
  const mine = loads += 1;
  const answer = await api("/session");
  // A late response to an older request would undo a login.
  if (mine !== loads) return;
  Object.assign(session, answer);
  $("application").textContent = session.application;
  $("user").textContent = session.user ?? "";
  $("logbutton").textContent = session.user ? "Log off" : "Log on";
  $("logbutton").disabled = false;
  $("pages").replaceChildren(...Object.entries(VIEWS).filter(([, view]) => !view.needs || session[view.needs])
    .map(([page, view]) => el("li", {}, el("a", { href: "#" + page }, view.name))));
  if (session.isOpen) api("/server").then(showState).catch((error) => say(error.message));
  else $("state").textContent = "not logged on";
  route();
}

$("logbutton").addEventListener("click", async () => {
  if (!session.user) { $("login").showModal(); return; }
  try { await api("/logout", {}); await load(); } catch (error) { say(error.message); }
});
$("login-cancel").addEventListener("click", () => $("login").close());
$("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  $("login-error").textContent = "";
  try {
    await api("/login", { user: form.get("user"), password: form.get("password") });
    $("login").close();
    event.target.reset();
    await load();
  } catch (error) { $("login-error").textContent = error.message; }
});

const themes = ["light", "dark"];
function theme(name) { document.documentElement.dataset.theme = name; }
theme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
$("theme").addEventListener("click", () => {
  const next = themes[1 - themes.indexOf(document.documentElement.dataset.theme)];
  localStorage.setItem("theme", next);
  theme(next);
});
addEventListener("hashchange", route);
load().catch((error) => { $("main").textContent = error.message; });
