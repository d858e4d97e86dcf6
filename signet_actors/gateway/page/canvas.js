// A drawing of points and lines that a person moves and enlarges. While it moves, what was drawn is moved as a picture; when it is
// still, it is drawn anew. It takes its colours from the style, by the names of the tokens.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";
import { useKeys } from "./keys.js";
import { useSetting } from "./settings-store.js";

const STILL_MS = 120;
const NEAR_PX = 12;
const CLICK_PX = 4;
const STEP_PX = 60;
const EXTENT = 230; // what is shown at first, from the middle to an edge
const MOST_LABELS = 120;
const LABEL_PX = 14;
const dark = matchMedia("(prefers-color-scheme: dark)");

// Draws what `given.current` has (see `Drawing`) on the canvas in `frame`, which is as large as what is seen of it.
function plotIn(frame, given) {
  const canvas = frame.querySelector("canvas");
  const line = frame.querySelector("polygon");
  const ink = canvas.getContext("2d");
  let [width, height, fit, still, drag] = [0, 0, 0, 0, null];
  let view = { x: 0, y: 0, scale: 0 }; // what is in the middle, and pixels of a unit
  let painted = view;

  const place = ({ x, y }) => [(x - view.x) * view.scale + width / 2, (y - view.y) * view.scale + height / 2];
  const where = (holds) => given.current.scene.points.filter((point) => holds(...place(point)));
  const inside = () => where((x, y) => x >= 0 && y >= 0 && x <= width && y <= height);
  const nearest = (points, atX, atY) => {
    const away = (point) => Math.hypot(place(point)[0] - atX, place(point)[1] - atY);
    return points.sort((one, other) => away(one) - away(other))[0];
  };
  const under = (atX, atY) => nearest(where((x, y) => Math.hypot(x - atX, y - atY) < NEAR_PX), atX, atY);
  // What stays where it is when the map is enlarged by a key: of what is selected, or else of all, that which is nearest to the middle.
  const kept = () => {
    const chosen = inside().filter((point) => given.current.marked.has(point.id));
    const point = nearest(chosen.length ? chosen : inside(), width / 2, height / 2);
    return point ? place(point) : [width / 2, height / 2];
  };
  const colour = (name) => {
    canvas.style.color = `var(--${name})`;
    return getComputedStyle(canvas).color;
  };

  function paint() {
    const { scene, marked, seen } = given.current;
    const grow = Math.min(3, Math.max(1, Math.sqrt(view.scale / fit)));
    const inView = inside();
    // A triangle for what is pinned, else a circle; with a margin a circle around it.
    const shapes = (points, margin) => {
      ink.beginPath();
      for (const point of points) {
        const [x, y] = place(point);
        const size = point.size * grow * (margin && point.colour === "pin" ? 1.7 : 1) + margin;
        if (point.colour === "pin" && !margin) {
          ink.moveTo(x, y - 1.5 * size);
          ink.lineTo(x + 1.3 * size, y + size);
          ink.lineTo(x - 1.3 * size, y + size);
        } else {
          ink.moveTo(x + size, y);
          ink.arc(x, y, size, 0, 2 * Math.PI);
        }
      }
    };
    Object.assign(canvas, { width: width * devicePixelRatio, height: height * devicePixelRatio }); // which clears it
    ink.scale(devicePixelRatio, devicePixelRatio);
    ink.strokeStyle = colour("line");
    for (const [from, until] of scene.lines) {
      ink.moveTo(...place(scene.points[from]));
      ink.lineTo(...place(scene.points[until]));
    }
    ink.stroke();
    for (const [name, points] of Map.groupBy(inView, (point) => point.colour)) {
      ink.fillStyle = colour(name);
      shapes(points, 0);
      ink.fill();
    }
    ink.fillStyle = ink.strokeStyle = colour("text");
    shapes(inView.filter((point) => marked.has(point.id)), 3);
    ink.stroke();
    ink.font = "12px system-ui, sans-serif";
    const labels = []; // none over another one: the first points are the most important ones
    for (const point of inView.filter((one) => one.label).slice(0, MOST_LABELS)) {
      const [left, top, long] = [place(point)[0] + point.size * grow + 5, place(point)[1] + 4, ink.measureText(point.label).width];
      if (labels.some((one) => Math.abs(one.top - top) < LABEL_PX && left < one.left + one.long && one.left < left + long)) continue;
      labels.push({ left, top, long });
      ink.fillText(point.label, left, top);
    }
    painted = view;
    canvas.style.transform = "none";
    seen(inView);
  }

  function turn(next) {
    view = next;
    const [x, y] = [(painted.x - view.x) * view.scale, (painted.y - view.y) * view.scale];
    canvas.style.transform = `translate(${x}px, ${y}px) scale(${view.scale / painted.scale})`;
    clearTimeout(still);
    still = setTimeout(paint, STILL_MS);
  }

  const whole = () => turn({ x: 0, y: 0, scale: fit });
  const move = (right, down) => turn({ ...view, x: view.x + right / view.scale, y: view.y + down / view.scale });
  const zoom = (factor, [atX, atY] = kept()) => {
    const scale = Math.max(fit / 4, Math.min(fit * 200, view.scale * factor));
    const apart = 1 / view.scale - 1 / scale;
    turn({ x: view.x + (atX - width / 2) * apart, y: view.y + (atY - height / 2) * apart, scale });
  };

  function pointed({ type, offsetX: x, offsetY: y, shiftKey, pointerId }) {
    const { isLasso, lassoed, picked } = given.current;
    if (type === "pointerdown") {
      frame.setPointerCapture(pointerId);
      drag = { x, y, far: 0, path: lassoed && (shiftKey || isLasso) ? [[x, y]] : null };
    } else if (!drag) frame.title = under(x, y)?.title || "";
    else if (type === "pointermove") {
      drag.far += Math.abs(x - drag.x) + Math.abs(y - drag.y);
      if (!drag.path && drag.far >= CLICK_PX) move(drag.x - x, drag.y - y);
      drag.path?.push([x, y]);
      line.setAttribute("points", drag.path?.join(" ") || "");
      Object.assign(drag, { x, y });
    } else {
      const { path, far } = drag;
      const point = under(x, y);
      drag = null;
      line.setAttribute("points", "");
      ink.resetTransform();
      const area = path && new Path2D(`M${path.join("L")}Z`);
      if (area) lassoed(where((atX, atY) => ink.isPointInPath(area, atX, atY)));
      else if (far < CLICK_PX && point) picked(point);
    }
  }

  function resize() {
    const before = fit;
    [width, height] = [frame.clientWidth, frame.clientHeight];
    fit = Math.min(width, height) / (2 * EXTENT);
    view = { ...view, scale: before ? (view.scale * fit) / before : fit };
    paint();
  }

  const resized = new ResizeObserver(resize);
  resized.observe(frame);
  resize();
  dark.addEventListener("change", paint);
  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, [event.offsetX, event.offsetY]);
  }, { passive: false });
  for (const type of ["down", "move", "up", "cancel"]) frame.addEventListener(`pointer${type}`, pointed);
  const close = () => {
    resized.disconnect();
    dark.removeEventListener("change", paint);
    clearTimeout(still);
  };
  return { move, zoom, whole, paint, close };
}

// `scene`: { points: [{ id, x, y, size, colour, title, label }], lines: [[place, place]] }; `marked` has the ids of points with a
// ring. `seen` hears which points are in view, `picked` of one that was clicked, `lassoed` of those within a lasso.
export function Drawing({ scene, name, marked, seen, picked, lassoed }) {
  const frame = useRef(null);
  const plot = useRef(null);
  const given = useRef(null);
  const [isLasso, setLasso] = useState(false);
  const theme = useSetting("theme");
  given.current = { scene, marked, seen, picked, lassoed, isLasso };
  useLayoutEffect(() => {
    plot.current = plotIn(frame.current, given);
    return plot.current.close;
  }, []);
  useEffect(() => plot.current.paint(), [scene, marked, theme]);
  const lasso = () => setLasso(!isLasso);
  const by = (right, down) => () => plot.current.move(right * STEP_PX, down * STEP_PX);
  const zoom = (factor) => () => plot.current.zoom(factor);
  const whole = () => plot.current.whole();
  useKeys({
    ArrowLeft: ["", by(-1, 0)],
    ArrowRight: ["move the map", by(1, 0)],
    ArrowUp: ["", by(0, -1)],
    ArrowDown: ["", by(0, 1)],
    "+": ["enlarge the map", zoom(1.5)],
    "-": ["make the map smaller", zoom(1 / 1.5)],
    0: ["the whole map", whole],
    ...(lassoed && { l: ["select with a lasso", lasso] }),
  });
  return html`<div class="frame" ref=${frame}><canvas role="img" aria-label=${name}></canvas><svg aria-hidden="true"><polygon /></svg></div>
    <div class="actions"><button aria-label="Smaller" onClick=${zoom(1 / 1.5)}>−</button><button aria-label="Larger" onClick=${zoom(1.5)}>+</button>
      <button onClick=${whole}>Whole map <kbd>0</kbd></button>
      ${lassoed ? html`<button aria-pressed=${isLasso} onClick=${lasso}>Lasso <kbd>l</kbd></button>` : null}</div>`;
}
