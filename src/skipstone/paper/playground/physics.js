// Frictionless billiards in the unit box, exact from collision to collision: `tasks/billiards.py`
// for one trajectory. Balls are [x, y].

const GRAZING = 1e-12; // Contacts with cos² of the impact angle below this are ignored.
const AT_REST = 1e-13; // Balls that approach more slowly than this share of their speed do not meet.
const MOST_COLLISIONS = 10000;

const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const minus = (a, b) => [a[0] - b[0], a[1] - b[1]];
const plus = (a, b, share = 1) => [a[0] + share * b[0], a[1] + share * b[1]];

function wallDelay(position, velocity, radius) {
  if (velocity === 0) return Infinity;
  return Math.max(0, ((velocity > 0 ? 1 - radius : radius) - position) / velocity);
}

// The first t ≥ 0 with |gap + closing·t| = 2·radius.
function pairDelay(one, two, radius) {
  const gap = minus(two.position, one.position);
  const closing = minus(two.velocity, one.velocity);
  const [approach, speed, distance] = [dot(gap, closing), dot(closing, closing), dot(gap, gap)];
  const own = dot(one.velocity, one.velocity) + dot(two.velocity, two.velocity);
  const apart = Math.max(distance - (2 * radius) ** 2, 0);
  const discriminant = approach ** 2 - speed * apart;
  const closes = approach < -AT_REST * Math.sqrt(distance * own);
  if (!closes || !(discriminant > GRAZING * speed * (2 * radius) ** 2)) return Infinity;
  return apart / (Math.sqrt(discriminant) - approach);
}

// The next collision: walls first, then pairs in the order of their balls.
function nextContact(balls, radius) {
  let next = { delay: Infinity };
  const offer = (delay, contact) => {
    if (delay < next.delay) next = { delay, ...contact };
  };
  balls.forEach(({ position, velocity }, ball) =>
    [0, 1].forEach((axis) => offer(wallDelay(position[axis], velocity[axis], radius), { ball, axis })),
  );
  balls.forEach((one, ball) =>
    balls.forEach((two, other) => {
      if (other > ball) offer(pairDelay(one, two, radius), { ball, other });
    }),
  );
  return next;
}

// Equal masses: what two balls have of velocity along the line of their centres is exchanged.
function bounce(balls, { ball, axis, other }, radius) {
  const one = balls[ball];
  if (other === undefined) {
    one.position[axis] = one.velocity[axis] > 0 ? 1 - radius : radius;
    one.velocity[axis] *= -1;
    return;
  }
  const two = balls[other];
  const gap = minus(two.position, one.position);
  const share = dot(gap, minus(two.velocity, one.velocity)) / dot(gap, gap);
  one.velocity = plus(one.velocity, gap, share);
  two.velocity = plus(two.velocity, gap, -share);
}

// Play balls of `position` and `velocity` out: straight pieces, and the collisions between them.
function simulate(start, duration, radius) {
  let balls = start.map(({ position, velocity }) => ({ position: [...position], velocity: [...velocity] }));
  let time = 0;
  const [pieces, collisions] = [[{ start: 0, balls }], []];
  for (;;) {
    const { delay, ...contact } = nextContact(balls, radius);
    if (!(time + delay <= duration)) return { pieces, collisions, duration };
    if (collisions.length === MOST_COLLISIONS) throw new Error("the balls have no room to move");
    time += delay;
    balls = balls.map(({ position, velocity }) => ({
      position: plus(position, velocity, delay),
      velocity: [...velocity],
    }));
    bounce(balls, contact, radius);
    const wall = contact.other === undefined;
    collisions.push({ time, wall, balls: wall ? [contact.ball] : [contact.ball, contact.other] });
    pieces.push({ start: time, balls });
  }
}

// All coordinates at a time, in a row.
function positionsAt({ pieces }, time) {
  const piece = pieces.findLast(({ start }) => start <= time) ?? pieces[0];
  return piece.balls.flatMap(({ position, velocity }) => plus(position, velocity, time - piece.start));
}

// Closest a ball's centre comes to a point, at any time.
function closestTo({ pieces, duration }, ball, point) {
  return Math.min(
    ...pieces.map(({ start, balls }, i) => {
      const length = (pieces[i + 1]?.start ?? duration) - start;
      const { position, velocity } = balls[ball];
      return closestOnWay(minus(position, point), [length * velocity[0], length * velocity[1]]);
    }),
  );
}

// Closest a straight way comes to the origin.
function closestOnWay(offset, way) {
  const squared = dot(way, way);
  const foot = squared > 0 ? clamp(-dot(offset, way) / squared, 0, 1) : 0;
  return Math.hypot(...plus(offset, way, foot));
}
