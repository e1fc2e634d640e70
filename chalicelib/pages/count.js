// The script of web pages: counts a view of the page and of its site, and shows their counts.
// docs/web-pages.md has its attributes and elements. It is served without comments and indentation.
(() => {
  if (window.vumi) return window.vumi.again();

  const { src, dataset } = document.currentScript;
  const api = new URL("api/v1/views", src);
  const site = dataset.site || location.hostname;

  // ---- ids

  const pageId = (path) => {
    try { path = decodeURIComponent(path); } catch {} // a percent sign that begins no escape
    return (site + path.replace(/^\/?/, "/").replace(/\/index\.html$/, "/")).normalize();
  };
  const here = () => pageId(dataset.path || location.pathname);

  // ---- elements

  const short = (count) => {
    const power = Math.min(Math.floor((`${count}`.length - 1) / 3), 4);
    const tenths = Math.floor(count / 1000 ** power * 10);
    const shown = tenths < 100 && tenths % 10 ? tenths / 10 : Math.floor(tenths / 10);
    return shown + ["", "k", "M", "B", "T"][power];
  };
  const formats = { plain: String, comma: (count) => count.toLocaleString("en"), short };
  const write = formats[dataset.format] || formats.comma;

  // Returns the id of the count of each element.
  const find = () => {
    const found = new Map();
    for (const element of document.querySelectorAll("[data-views]")) {
      const { views } = element.dataset;
      found.set(element, views === "site" ? site : views ? pageId(views) : here());
    }
    for (const name of ["busuanzi", "vercount"]) {
      for (const { style } of document.querySelectorAll(`[id^=${name}_][id$=_uv]`)) {
        style.display = "none"; // visitors are not told apart
      }
      for (const [kind, id] of [["page", here()], ["site", site]]) {
        for (const element of document.querySelectorAll(`#${name}_value_${kind}_pv`)) {
          found.set(element, id);
        }
      }
    }
    return found;
  };

  const fill = (elements, counts) => {
    for (const [element, id] of elements) {
      if (counts.get(id) == null) continue;
      element.textContent = write(counts.get(id));
      const container = document.getElementById(element.id.replace("_value_", "_container_"));
      if (container) container.style.display = "inline";
    }
  };

  // ---- requests

  const ask = async (method, path, ids) => {
    const query = ids.map((id) => `id=${encodeURIComponent(id)}`).join("&");
    const response = await fetch(`${api}${path}?${query}`, { method, keepalive: method === "POST" });
    const body = await response.json();
    if (!response.ok) throw body;
    return body;
  };

  // Fills all elements, and reads the counts that are not known yet: some 6,000 characters of ids
  // in a request, because servers limit the length of a URL.
  const show = async (counts) => {
    if (document.readyState === "loading") {
      await new Promise((parsed) => addEventListener("DOMContentLoaded", parsed));
    }
    const elements = find();
    fill(elements, counts);
    const missing = [...new Set(elements.values())].filter((id) => !counts.has(id));
    while (missing.length) {
      const ids = [];
      for (let room = 6000; missing.length && ids.length < 100 && room > 0;) {
        ids.push(missing.shift());
        room -= encodeURIComponent(ids.at(-1)).length + 4;
      }
      for (const { id, count } of (await ask("GET", "/counts", ids)).counts) counts.set(id, count);
      fill(elements, counts);
    }
  };

  // ---- what this browser remembers

  const stored = (kind, use) => { try { return use(window[kind]); } catch {} }; // it may be forbidden
  const memory = dataset.once === "day" ? "localStorage" : "sessionStorage";
  const today = dataset.once === "day" && new Date().toDateString();
  const remembered = () => {
    const [day, ...ids] = stored(memory, (all) => JSON.parse(all.getItem("vu-mi"))) || [];
    return dataset.once && day === today ? ids : [];
  };
  const remember = (ids) => {
    if (dataset.once) stored(memory, (all) => all.setItem("vu-mi", JSON.stringify([today, ...ids])));
  };
  const turn = () => {
    const [, to] = /^#vu-mi-(on|off)$/.exec(location.hash) || [];
    if (to) stored("localStorage", (all) => all.setItem("vu-mi-counts", to));
  };
  const isOff = () => stored("localStorage", (all) => all.getItem("vu-mi-counts")) === "off";

  // ---- counting

  // The response has the counts before this view.
  const send = async (page, counts) => {
    const known = remembered();
    const ids = isOff() ? [] : [page, site].filter((id) => !known.includes(id));
    if (!ids.length) return;
    const body = await ask("POST", "", ids);
    remember([...known, ...ids]);
    for (const { id, count } of body.views || [body]) counts.set(id, count == null ? count : count + 1);
  };

  const isReal = !navigator.webdriver && !/^(|(.*\.)?localhost|127\.[\d.]+|\[::1\])$/.test(location.hostname);
  const count = async (path) => {
    const counts = new Map();
    try {
      if (!isReal) return;
      await send(path === undefined ? here() : pageId(path), counts);
      await show(counts);
    } catch {} // the elements stay as they are
  };

  let latest;
  const visit = () => {
    latest = here();
    return count();
  };
  const follow = () => latest === here() || visit();
  const again = () => latest === here() ? isReal && show(new Map()).catch(() => {}) : visit();
  window.vumi = { count, again };

  turn();
  addEventListener("hashchange", turn);
  const start = () => {
    visit();
    if (dataset.spa === undefined) return;
    const { pushState } = history;
    history.pushState = function (...to) {
      pushState.apply(this, to);
      follow();
    };
    addEventListener("popstate", follow);
  };
  if (document.prerendering) document.addEventListener("prerenderingchange", start, { once: true });
  else start();
})();
