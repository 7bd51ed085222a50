"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const span = data.end - data.start;
  const time = (offset) =>
    new Date(1000 * (data.start + offset)).toISOString().replace("T", " ").slice(0, 19);

  const words = {
    shares(offset) {
      const cell = Math.floor(offset / data.shares.step);
      const lines = data.states
        .map((name, state) => [name, data.shares.counts[state][cell]])
        .filter(([, count]) => count > 0)
        .sort((a, b) => b[1] - a[1])
        .map(([name, count]) => `${name}: ${count}`);
      return [time(cell * data.shares.step), ...lines];
    },
    map(offset, height) {
      const row = Math.min(data.map.rows.length - 1, Math.floor(height * data.map.rows.length));
      const letter = data.map.cells[row][Math.floor(offset / data.map.step)];
      const state = letter === "." || letter === undefined ? "No data" : data.states[letter];
      return [data.map.rows[row], time(offset), state];
    },
    timeline(offset, height, plot) {
      const own = data.timelines[plot.dataset.number];
      let index = own.times.findIndex((at) => at > offset) - 1;
      if (index < 0) index = own.times.length - 1;
      const near = own.times.length && Math.abs(own.times[index] - offset) < Math.max(30, span / 50);
      const values = own.series
        .filter((each) => near && each.means[index] !== null)
        .map((each) => `${each.name}: ${each.means[index].toLocaleString("en")} ${each.unit}`);
      const found = own.found.filter(([, from, to]) => from <= offset && offset < to);
      const kinds = [...new Set(found.map(([name]) => name))];
      return [time(offset), ...values, kinds.join(", ")];
    },
  };

  const place = (event) => {
    const right = event.clientX + 16 + tip.offsetWidth > innerWidth;
    tip.style.left = `${Math.max(4, right ? event.clientX - tip.offsetWidth - 12 : event.clientX + 16)}px`;
    tip.style.top = `${Math.max(4, Math.min(innerHeight - tip.offsetHeight - 4, event.clientY + 14))}px`;
  };

  for (const plot of document.querySelectorAll("[data-hover]")) {
    const cursors = plot.querySelectorAll(".cursor");
    const leave = () => {
      tip.hidden = true;
      for (const each of cursors) each.style.display = "none";
    };
    const move = (event) => {
      const area = event.target.closest(".area");
      if (!area || !area.clientHeight) return leave();
      const box = area.getBoundingClientRect();
      const share = Math.min(0.99999, Math.max(0, (event.clientX - box.left) / box.width));
      const height = Math.min(0.99999, Math.max(0, (event.clientY - box.top) / box.height));
      for (const each of cursors) {
        each.style.display = "block";
        each.style.left = `${100 * share}%`;
      }
      tip.textContent = words[plot.dataset.hover](share * span, height, plot).filter(Boolean).join("\n");
      tip.hidden = false;
      place(event);
    };
    plot.addEventListener("pointermove", move);
    plot.addEventListener("pointerdown", move);
    plot.addEventListener("pointerleave", leave);
  }

  const choose = document.getElementById("choose");
  if (choose) {
    choose.addEventListener("change", () => {
      for (const each of document.querySelectorAll(".timeline"))
        each.hidden = each.dataset.number !== choose.value;
    });
  }

  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details")) each.open = true;
  });
})();
