// Places for the entities of a map: those that depend on each other come together, all others apart. The same graph gets the same
// places. Source: Fruchterman and Reingold 1991, "Graph Drawing by Force-directed Placement".
import { cut } from "./words.js";

const EXTENT = 210;
const STEPS = 100;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

// Returns the point with this number on a spiral that fills a circle evenly.
function spiral(number, apart) {
  const away = apart * Math.sqrt(number);
  return { x: away * Math.cos(number * GOLDEN), y: away * Math.sin(number * GOLDEN) };
}

function places(number, lines) {
  const apart = EXTENT / Math.sqrt(number + 1);
  const all = Array.from({ length: number }, (_, at) => spiral(at + 1, apart));
  for (let step = 0; step < STEPS; step += 1) {
    const moves = all.map(({ x, y }) => ({ x: -x / 10, y: -y / 10 }));
    const pull = (one, other, isLink) => {
      const x = all[other].x - all[one].x;
      const y = all[other].y - all[one].y;
      const square = Math.max(0.01, x * x + y * y);
      const by = isLink ? Math.sqrt(square) / apart : -(apart * apart) / square;
      moves[one].x += x * by;
      moves[one].y += y * by;
      moves[other].x -= x * by;
      moves[other].y -= y * by;
    };
    for (let one = 0; one < number; one += 1) {
      for (let other = 0; other < one; other += 1) pull(one, other, false);
    }
    for (const [one, other] of lines) pull(one, other, true);
    const most = (EXTENT / 5) * (1 - step / STEPS);
    all.forEach((place, at) => {
      const { x, y } = moves[at];
      const share = Math.min(1, most / (Math.hypot(x, y) || 1));
      place.x += x * share;
      place.y += y * share;
    });
  }
  const extent = Math.max(1, ...all.flatMap(({ x, y }) => [Math.abs(x), Math.abs(y)]));
  return all.map(({ x, y }) => ({ x: (x / extent) * EXTENT, y: (y / extent) * EXTENT }));
}

// Returns the scene of a constellation: its entities, and after these what is known of each around it.
export function arranged({ entities, dependencies }) {
  const number = new Map(entities.map((one, at) => [one.id, at]));
  const lines = dependencies.map((one) => [number.get(one.sourceEntityId), number.get(one.targetEntityId)]);
  const middles = places(entities.length, lines);
  const points = entities.map((one, at) => ({ ...one, ...middles[at], size: 3 + Math.min(5, Math.sqrt(one.mentions)), colour: one.pinned ? "pin" : "fact", title: cut(one.name, 160), label: cut(one.name, 28) }));
  entities.forEach((entity, at) => {
    const facts = entity.aspects.flatMap((aspect) => aspect.attributes);
    points[at].facts = facts.length;
    facts.forEach((fact, index) => {
      const from = spiral(index + 5, Math.min(4, 40 / Math.sqrt(entities.length)));
      lines.push([at, points.length]);
      points.push({ of: entity.id, x: middles[at].x + from.x, y: middles[at].y + from.y, size: 1.5, colour: fact.kind === "constraint" ? "rule" : "muted", title: cut(fact.content, 160) });
    });
  });
  return { points, lines };
}
