'use strict';
// Draws the plots of the page. What stands in the data is set as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const root = document.documentElement;

  const scheme = document.getElementById('scheme');
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.scheme || (dark.matches ? 'dark' : 'light')) === 'dark';
  const nameScheme = () => { scheme.textContent = isDark() ? 'Light' : 'Dark'; };
  scheme.hidden = false;
  scheme.addEventListener('click', () => { root.dataset.scheme = isDark() ? 'light' : 'dark'; nameScheme(); });
  dark.addEventListener('change', nameScheme);
  nameScheme();

  const SVG = 'http://www.w3.org/2000/svg';
  const svg = (name, attributes, text) => {
    const it = document.createElementNS(SVG, name);
    for (const key in attributes) it.setAttribute(key, attributes[key]);
    if (text !== undefined) it.textContent = text;
    return it;
  };
  const html = (name, className, text) => {
    const it = document.createElement(name);
    if (className) it.className = className;
    if (text !== undefined) it.textContent = text;
    return it;
  };
  const colour = (line) => `var(--c${line.colour % data.colours})`;
  const dash = (line) => data.dashes[line.colour % data.dashes.length];

  const bytes = (it) => {
    const [unit, by] = it >= 1048576 ? ['MiB', 1048576] : it >= 1024 ? ['KiB', 1024] : ['B', 1];
    return `${+(it / by).toFixed(2)} ${unit}`;
  };
  const number = (it) => {
    const size = Math.abs(it);
    return size !== 0 && (size >= 1e6 || size < 1e-3) ? it.toExponential(1) : String(+it.toPrecision(size >= 1000 ? 7 : 4));
  };
  const shown = (scale, it) => (scale === 'bytes' ? bytes(it) : number(it));

  const even = (low, high) => {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((it) => it * power).find((it) => rough <= it);
    const ticks = [];
    for (let at = Math.ceil(low / step); at * step <= high && ticks.length < 20; at++) ticks.push(at * step);
    return ticks;
  };
  const ticks = (scale, low, high, most) => {
    if (scale === 'linear') return even(low, high);
    const base = scale === 'bytes' ? 2 : 10;
    const span = Math.log(high / low) / Math.log(base);
    const steps = base === 10 && span < 2.5 ? [1, 2, 5] : [1];
    const stride = Math.max(1, Math.ceil(span / most));
    const found = [];
    for (let at = Math.floor(Math.log(low) / Math.log(base)) - 1; base ** at <= high; at++) {
      if (at % stride === 0) for (const step of steps) found.push(step * base ** at);
    }
    const inside = found.filter((it) => low <= it && it <= high);
    return inside.length < 2 ? even(low, high) : inside;
  };
  const to = (scale) => (scale === 'linear' ? (it) => it : Math.log);
  const back = (scale) => (scale === 'linear' ? (it) => it : Math.exp);

  // The last of `line` that is not beyond `x`, or the nearest one.
  const find = (line, x, nearest) => {
    const p = line.points;
    let low = 0;
    let high = p.length / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (p[2 * middle] <= x) low = middle + 1; else high = middle;
    }
    const before = Math.max(0, low - 1);
    return nearest && 2 * low < p.length && p[2 * low] - x < x - p[2 * before] ? low : before;
  };

  let clips = 0;

  function Plot(figure, spec) {
    const hidden = new Set();
    const scales = { x: spec.x.scale, y: spec.y.scale };
    let zoom = null;
    let cursor = null;
    let drag = null;
    const left = 62; const right = 12; const top = 10; const bottom = 44;

    const area = svg('svg', { role: 'img', tabindex: '0', 'aria-label':
      `${spec.title}. ${spec.y.name} over ${spec.x.name}: ${spec.lines.map((it) => it.name).join(', ')}` });
    const tip = html('div', 'tip');
    tip.hidden = true;
    tip.setAttribute('aria-live', 'polite');
    const tools = html('div', 'tools');
    const legend = html('div', 'legend');
    figure.append(area, tip, legend, tools);

    const button = (parent, text, act) => {
      const it = html('button', '', text);
      it.type = 'button';
      it.addEventListener('click', () => { act(it); draw(); });
      parent.append(it);
      return it;
    };
    spec.lines.forEach((line, at) => {
      const it = button(legend, '', () => {
        if (!hidden.delete(at)) hidden.add(at);
        it.setAttribute('aria-pressed', String(!hidden.has(at)));
      });
      it.setAttribute('aria-pressed', 'true');
      const key = svg('svg', { viewBox: '0 0 26 10', 'aria-hidden': 'true' });
      key.append(svg('path', { d: 'M0 5H26', style: `stroke:${colour(line)};stroke-width:3`, 'stroke-dasharray': dash(line) }));
      it.append(key, html('span', '', `${line.name} (${line.values})`));
    });
    const reset = button(tools, 'Reset zoom', () => { zoom = null; });
    for (const name of ['x', 'y']) {
      const all = spec.lines.flatMap((it) => it.points.filter((_, at) => at % 2 === (name === 'x' ? 0 : 1)));
      const log = spec[name].scale === 'bytes' ? 'bytes' : 'log';
      if (all.some((it) => it > 0)) {
        const label = () => `${name}: ${scales[name] === 'linear' ? 'linear' : 'logarithmic'}`;
        const it = button(tools, label(), () => {
          scales[name] = scales[name] === 'linear' ? log : 'linear';
          zoom = null;
          it.textContent = label();
        });
      }
    }

    const visible = () => spec.lines.filter((_, at) => !hidden.has(at));
    const range = (name, lines) => {
      let low = Infinity;
      let high = -Infinity;
      const other = zoom && name === 'y' ? zoom : null;
      for (const { points: p } of lines) {
        for (let at = 0; at < p.length; at += 2) {
          const it = p[at + (name === 'y' ? 1 : 0)];
          if (other && (p[at] < other[0] || other[1] < p[at])) continue;
          if (scales[name] !== 'linear' && it <= 0) continue;
          if (it < low) low = it;
          if (high < it) high = it;
        }
      }
      if (low > high) return scales[name] === 'linear' ? [0, 1] : [1, 10];
      if (scales[name] !== 'linear') return name === 'y' || low === high ? [low / 1.15, high * 1.15] : [low, high];
      if (name === 'y') { low = Math.min(0, low); high += (high - low) * 0.05; }
      return low === high ? [low - 0.5, high + 0.5] : [low, high];
    };

    let px = null;
    let view = null;
    function draw() {
      const width = Math.max(200, area.clientWidth);
      const height = Math.max(160, area.clientHeight);
      const lines = visible();
      const x = zoom || range('x', lines);
      const y = range('y', lines);
      const place = (scale, [low, high], from, until) => {
        const f = to(scale);
        const [a, b] = [f(low), f(high)];
        return (it) => from + ((f(it) - a) / (b - a)) * (until - from);
      };
      px = place(scales.x, x, left, width - right);
      const py = place(scales.y, y, height - bottom, top);
      view = { x, y, width, height, py };
      area.setAttribute('viewBox', `0 0 ${width} ${height}`);
      const parts = [];
      const clip = `clip${clips++}`;
      const shape = svg('clipPath', { id: clip });
      shape.append(svg('rect', { x: left - 5, y: top - 5, width: width - left - right + 10, height: height - top - bottom + 10 }));
      parts.push(shape);
      let free = -Infinity;
      for (const it of ticks(scales.x, x[0], x[1], (width - left - right) / 64)) {
        const at = px(it);
        parts.push(svg('path', { class: 'grid', d: `M${at} ${top}V${height - bottom}` }));
        const label = shown(scales.x, it);
        if (at - label.length * 3.6 < free) continue;
        free = at + label.length * 3.6 + 4;
        parts.push(svg('text', { x: Math.min(at, width - label.length * 3.4), y: height - bottom + 16, 'text-anchor': 'middle' }, label));
      }
      for (const it of ticks(scales.y, y[0], y[1], 7)) {
        const at = py(it);
        parts.push(svg('path', { class: 'grid', d: `M${left} ${at}H${width - right}` }));
        parts.push(svg('text', { x: left - 6, y: at + 4, 'text-anchor': 'end' }, shown(scales.y, it)));
      }
      parts.push(svg('text', { x: (left + width - right) / 2, y: height - 8, 'text-anchor': 'middle' }, spec.x.name));
      parts.push(svg('text', { transform: `translate(13 ${(top + height - bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle' }, spec.y.name));
      if (spec.mark && x[0] <= spec.mark[0] && spec.mark[0] <= x[1]) {
        const at = px(spec.mark[0]);
        parts.push(svg('path', { class: 'mark', d: `M${at} ${top}V${height - bottom}` }));
        parts.push(svg('text', { x: at + 5, y: top + 12 }, spec.mark[1]));
      }
      const traces = svg('g', { 'clip-path': `url(#${clip})` });
      for (const line of lines) {
        const p = line.points;
        const few = spec.shape === 'dotted' || p.length <= 2;
        let d = '';
        for (let at = 0; at < p.length; at += 2) {
          if ((scales.x !== 'linear' && p[at] <= 0)) continue;
          // What is below a logarithmic axis lies on it.
          const value = scales.y !== 'linear' && p[at + 1] <= 0 ? y[0] : p[at + 1];
          const [a, b] = [px(p[at]).toFixed(1), py(value).toFixed(1)];
          d += d === '' ? `M${a} ${b}` : spec.shape === 'steps' ? `H${a}V${b}` : `L${a} ${b}`;
          if (few) traces.append(svg('circle', { cx: a, cy: b, r: 3.5, style: `fill:${colour(line)}` }));
        }
        traces.append(svg('path', { class: `trace ${spec.shape}`, d, style: `stroke:${colour(line)}`, 'stroke-dasharray': dash(line) }));
      }
      parts.push(traces);
      area.replaceChildren(...parts);
      reset.disabled = zoom === null;
      tell();
    }

    // Shows what the lines have at the cursor.
    function tell() {
      area.querySelectorAll('.cursor, .drag').forEach((it) => it.remove());
      const lines = visible();
      tip.hidden = cursor === null || lines.length === 0;
      if (drag) {
        const [a, b] = [drag.from, drag.until].sort((m, n) => m - n);
        area.append(svg('rect', { class: 'drag', x: a, y: top, width: b - a, height: view.height - top - bottom }));
      }
      if (tip.hidden) return;
      const at = px(cursor);
      area.append(svg('path', { class: 'cursor', d: `M${at} ${top}V${view.height - bottom}` }));
      const rows = lines.filter((it) => it.points.length > 0).map((line) => {
        const found = find(line, cursor, spec.shape !== 'steps');
        const [x, y] = [line.points[2 * found], line.points[2 * found + 1]];
        const before = spec.shape === 'steps' && cursor < x;
        const row = html('div', '', `${line.name}: ${before ? 0 : number(y)}${spec.shape === 'steps' ? '' : ` at ${shown(scales.x, x)}`}`);
        row.style.borderLeft = `4px solid ${colour(line)}`;
        row.style.paddingLeft = '.35rem';
        return row;
      });
      tip.replaceChildren(html('div', '', `${spec.x.name}: ${shown(scales.x, cursor)}`), ...rows);
      const [box, inside] = [figure.getBoundingClientRect(), area.getBoundingClientRect()];
      const x = inside.left - box.left + at;
      tip.style.top = `${inside.top - box.top + top}px`;
      tip.style.left = at < view.width / 2 ? `${x + 12}px` : 'auto';
      tip.style.right = at < view.width / 2 ? 'auto' : `${figure.clientWidth - x + 12}px`;
    }

    const inverse = (pixel) => {
      const [a, b] = view.x.map(to(scales.x));
      const share = Math.min(1, Math.max(0, (pixel - left) / (view.width - left - right)));
      return back(scales.x)(a + share * (b - a));
    };
    const pixel = (event) => {
      const box = area.getBoundingClientRect();
      return Math.min(view.width - right, Math.max(left, event.clientX - box.left));
    };
    area.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      drag = { from: pixel(event), until: pixel(event) };
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener('pointermove', (event) => {
      const at = pixel(event);
      if (drag) drag.until = at;
      cursor = inverse(at);
      tell();
    });
    const release = (event) => {
      if (!drag) return;
      const [a, b] = [drag.from, drag.until].sort((m, n) => m - n);
      drag = null;
      if (event.type === 'pointerup' && b - a > 6) zoom = [inverse(a), inverse(b)];
      draw();
    };
    area.addEventListener('pointerup', release);
    area.addEventListener('pointercancel', release);
    area.addEventListener('pointerleave', () => { if (!drag) { cursor = null; tell(); } });
    area.addEventListener('blur', () => { cursor = null; tell(); });
    area.addEventListener('dblclick', () => { zoom = null; draw(); });
    area.addEventListener('keydown', (event) => {
      const at = cursor === null ? left + (view.width - left - right) / 2 : px(cursor);
      const move = (by) => { cursor = inverse(Math.min(view.width - right, Math.max(left, at + by))); };
      const closer = (by) => {
        const half = ((view.width - left - right) * by) / 2;
        zoom = [inverse(at - half), inverse(at + half)];
      };
      switch (event.key) {
        case 'ArrowLeft': move(-10); break;
        case 'ArrowRight': move(10); break;
        case '+': closer(0.5); break;
        case '-': case '0': case 'Escape': zoom = null; break;
        default: return;
      }
      event.preventDefault();
      draw();
    });
    new ResizeObserver(() => draw()).observe(area);
    draw();
  }

  // Figures with their intervals, one below the other, each under its name.
  function Ranges(figure, spec) {
    const left = 12; const right = 12; const top = 4; const bottom = 40; const row = 36;
    const height = top + spec.rows.length * row + bottom;
    const area = svg('svg', { role: 'img', tabindex: '0', 'aria-label': `${spec.title}. ${spec.x.name}: ${spec.lines.map((line) =>
      `${line.name}: ${spec.rows.map((it, at) => [it, line.points.findIndex((y, n) => n % 2 && y === at)])
        .filter(([, n]) => n > 0).map(([it, n]) => `${it} ${number(line.points[n - 1])}`).join(', ')}`).join('; ')}` });
    area.style.height = `${height}px`;
    const legend = html('div', 'legend');
    for (const line of spec.lines) {
      const it = html('span', '');
      const key = svg('svg', { viewBox: '0 0 26 10', 'aria-hidden': 'true' });
      key.append(svg('circle', { cx: 13, cy: 5, r: 5, style: `fill:${colour(line)}` }));
      it.append(key, html('span', '', line.name));
      legend.append(it);
    }
    figure.append(area, legend);
    const log = spec.x.scale !== 'linear';
    const all = spec.lines.flatMap((it) => it.spans.concat(it.points.filter((_, at) => at % 2 === 0)))
      .concat(spec.mark ? [spec.mark[0]] : []).filter((it) => !log || it > 0);
    const least = Math.min(...all);
    const most = Math.max(...all);
    const [low, high] = log ? [least / 1.15, most * 1.15] : [Math.min(0, least), (most * 1.05) || 1];
    function draw() {
      const width = Math.max(200, area.clientWidth);
      area.setAttribute('viewBox', `0 0 ${width} ${height}`);
      const f = to(spec.x.scale);
      // What is 0 lies on the edge of a logarithmic axis.
      const px = (it) => left + ((f(Math.max(low, it)) - f(low)) / (f(high) - f(low))) * (width - left - right);
      const until = height - bottom;
      const parts = [];
      let free = -Infinity;
      for (const it of ticks(spec.x.scale, low, high, (width - left - right) / 64)) {
        const label = shown(spec.x.scale, it);
        parts.push(svg('path', { class: 'grid', d: `M${px(it)} ${top}V${until}` }));
        if (px(it) - label.length * 3.6 < free) continue;
        free = px(it) + label.length * 3.6 + 4;
        const at = Math.max(label.length * 3.4, Math.min(px(it), width - label.length * 3.4));
        parts.push(svg('text', { x: at, y: until + 16, 'text-anchor': 'middle' }, label));
      }
      parts.push(svg('text', { x: width / 2, y: height - 6, 'text-anchor': 'middle' }, spec.x.name));
      if (spec.mark) {
        parts.push(svg('path', { class: 'mark', d: `M${px(spec.mark[0])} ${top}V${until}` }));
      }
      spec.rows.forEach((it, at) => {
        const letters = Math.max(12, Math.floor((width - left - right) / 6.6));
        const name = it.length > letters ? `${it.slice(0, letters - 1)}…` : it;
        const text = svg('text', { class: 'row', x: left, y: top + at * row + 14 }, name);
        text.append(svg('title', {}, it));
        parts.push(text);
      });
      for (const line of spec.lines) {
        for (let at = 0; at < line.spans.length; at += 2) {
          const y = top + (line.points[at + 1] + 1) * row - 11;
          const [from, until] = [px(line.spans[at]), px(line.spans[at + 1])];
          const dot = svg('g', { style: `--line:${colour(line)}` });
          dot.append(
            svg('title', {}, `${line.name}: ${number(line.points[at])} [${number(line.spans[at])} – ${number(line.spans[at + 1])}]`),
            svg('path', { class: 'span', d: `M${from} ${y}H${until}` }),
            svg('circle', { class: 'dot', cx: px(line.points[at]), cy: y, r: 5 }));
          parts.push(dot);
        }
      }
      area.replaceChildren(...parts);
    }
    new ResizeObserver(() => draw()).observe(area);
    draw();
  }

  const show = (it) => {
    const spec = data.plots[Number(it.dataset.plot)];
    (spec.shape === 'ranges' ? Ranges : Plot)(it, spec);
  };

  // A plot is drawn when it comes near, so that a page of hundreds opens at once.
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      show(entry.target);
    }
  }, { rootMargin: '400px' });
  // What tells most of each experiment is read first.
  document.querySelectorAll('.telling [data-plot]').forEach(show);
  document.querySelectorAll('details [data-plot]').forEach((it) => observer.observe(it));
  addEventListener('beforeprint', () => {
    // What is folded would not be on the paper.
    document.querySelectorAll('details').forEach((it) => { it.open = true; });
    for (const it of document.querySelectorAll('[data-plot]')) {
      if (it.querySelector('svg')) continue;
      observer.unobserve(it);
      show(it);
    }
  });
})();
