// Handles over a table: balls and arrows that are dragged, or moved with the arrow keys.

const NUDGE = 0.02; // How far a key moves a ball, in widths of the table.
const TURN = 3; // How far a key turns an arrow, in degrees.
const OUTSIDE = 0.05; // How far outside the table a handle may be.
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

class Handle {
  // `move` gets the point a handle is dragged to, `nudge` the direction of an arrow key.
  constructor(stage, classes, move, nudge) {
    this.stage = stage;
    this.button = stage.appendChild(element("button", `handle ${classes}`));
    this.button.type = "button";
    this.point = [0.5, 0.5];
    this.grip = null; // From the pointer to the handle, while it is dragged.
    this.button.addEventListener("pointerdown", (event) => {
      this.button.setPointerCapture(event.pointerId);
      this.grip = minus(this.point, this.pointAt(event));
    });
    this.button.addEventListener("pointermove", (event) => {
      if (this.grip) move(plus(this.pointAt(event), this.grip));
    });
    for (const name of ["pointerup", "pointercancel"])
      this.button.addEventListener(name, () => (this.grip = null));
    this.button.addEventListener("keydown", (event) => {
      if (!(event.key in KEYS)) return;
      event.preventDefault();
      nudge(KEYS[event.key]);
    });
  }

  pointAt({ clientX, clientY }) {
    const { left, top, width, height } = this.stage.getBoundingClientRect();
    return [(clientX - left) / width, 1 - (clientY - top) / height];
  }

  place(point, label) {
    this.point = point;
    const [x, y] = point.map((at) => clamp(at, -OUTSIDE, 1 + OUTSIDE));
    Object.assign(this.button.style, { left: `${100 * x}%`, top: `${100 * (1 - y)}%` });
    this.button.setAttribute("aria-label", label);
  }
}

// The shaft of an arrow from a ball to the handle at its tip.
function placeShaft(shaft, from, to) {
  const [dx, dy] = minus(to, from);
  Object.assign(shaft.style, {
    left: `${100 * from[0]}%`,
    top: `${100 * (1 - from[1])}%`,
    width: `${100 * Math.hypot(dx, dy)}%`,
    transform: `rotate(${-Math.atan2(dy, dx)}rad)`,
  });
}

// Degrees from the right, counterclockwise, from 0 to 359.
const degrees = ([x, y]) => (Math.round((180 * Math.atan2(y, x)) / Math.PI) + 360) % 360;

function turned([x, y], angle) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return [x * cos - y * sin, x * sin + y * cos];
}

// The nearest velocity with a speed within bounds; no direction becomes to the right.
function withSpeed(velocity, [slowest, fastest]) {
  const speed = Math.hypot(...velocity);
  const wanted = clamp(speed, slowest, fastest);
  return speed > 0 ? velocity.map((v) => (v * wanted) / speed) : [wanted, 0];
}

// Where a ball can lie: within the walls and not in the other ball. Null if there is no such place
// near by, as in a corner behind it.
function freePlace(point, other, radius) {
  const inside = (at) => at.map((x) => clamp(x, radius, 1 - radius));
  const wanted = inside(point);
  const gap = minus(wanted, other);
  const distance = Math.hypot(...gap);
  if (distance >= 2 * radius) return wanted;
  const way = distance > 0 ? gap.map((x) => x / distance) : [1, 0];
  const pushed = inside(plus(other, way, 2 * radius + SLACK));
  return Math.hypot(...minus(pushed, other)) >= 2 * radius ? pushed : null;
}

// A random table: no ball in another.
function randomPlaces(count, radius, random = Math.random) {
  for (;;) {
    const places = Array.from({ length: count }, () =>
      [0, 0].map(() => radius + (1 - 2 * radius) * random()),
    );
    const apart = (one, i) => places.slice(0, i).every((two) => Math.hypot(...minus(one, two)) >= 2 * radius);
    if (places.every(apart)) return places;
  }
}

function randomDirection(random = Math.random) {
  const angle = 2 * Math.PI * random();
  return [Math.cos(angle), Math.sin(angle)];
}

// Handles of balls, and of the velocities of some: what a table is set up with.
class Setup {
  // `speeds` are the slowest and the fastest; `moving` balls have an arrow. `changed` is called
  // after every change.
  constructor({ radius, labels, speeds, arrow, moving }, changed) {
    Object.assign(this, { radius, labels, speeds, arrow, moving, changed });
    this.balls = [];
  }

  set(balls) {
    this.balls = balls;
    this.place();
    this.changed();
  }

  // Put the handles on a panel.
  attach(stage) {
    this.stage = stage;
    this.handles = this.labels.map((_, i) => {
      const ball = new Handle(
        stage,
        "ball-handle",
        (point) => this.moveBall(i, point),
        (way) => this.moveBall(i, plus(this.balls[i].position, way, NUDGE)),
      );
      if (!this.moving.includes(i)) return { ball };
      const shaft = stage.appendChild(element("i", "shaft"));
      const arrow = new Handle(
        stage,
        "arrow-handle",
        (point) => this.aim(i, point),
        ([sideways, up]) => this.nudgeArrow(i, sideways, up),
      );
      return { ball, shaft, arrow };
    });
  }

  moveBall(i, point) {
    const others = this.balls.filter((_, j) => j !== i);
    const place = freePlace(point, others[0].position, this.radius);
    if (place) this.change(i, { position: place });
  }

  // The tip of the arrow for a velocity, and the velocity for a tip.
  tip({ position, velocity }) {
    const speed = Math.hypot(...velocity);
    const length = this.arrow.least + this.arrow.perSpeed * speed;
    return plus(position, velocity, length / speed);
  }

  aim(i, point) {
    const way = minus(point, this.balls[i].position);
    const length = Math.hypot(...way);
    if (length === 0) return;
    const speed = this.arrow.perSpeed ? (length - this.arrow.least) / this.arrow.perSpeed : 1;
    const velocity = way.map((x) => (x * Math.max(speed, 1e-6)) / length);
    this.change(i, { velocity: withSpeed(velocity, this.speeds) });
  }

  nudgeArrow(i, sideways, up) {
    const { velocity } = this.balls[i];
    const faster = velocity.map((v) => v * (1 + 0.05 * up));
    const speeds = this.speeds;
    this.change(i, { velocity: withSpeed(turned(faster, (-sideways * TURN * Math.PI) / 180), speeds) });
  }

  change(i, what) {
    this.set(this.balls.map((ball, j) => (i === j ? { ...ball, ...what } : ball)));
  }

  place() {
    const [slow, fast] = this.speeds;
    this.balls.forEach((made, i) => {
      const { ball, shaft, arrow } = this.handles[i];
      const [x, y] = made.position.map((at) => at.toFixed(2));
      ball.place(made.position, `${this.labels[i]} ball at ${x}, ${y}: drag it, or use the arrow keys`);
      ball.button.style.width = `${200 * this.radius}%`;
      if (!arrow) return;
      const speed = slow < fast ? `, speed ${Math.hypot(...made.velocity).toFixed(2)}` : "";
      const keys = slow < fast ? "left and right turn it, up and down change its speed" : "left and right turn it";
      arrow.place(this.tip(made), `direction of the ${this.labels[i]} ball, ${degrees(made.velocity)} degrees${speed}: ${keys}`);
      placeShaft(shaft, made.position, this.tip(made));
    });
  }
}
