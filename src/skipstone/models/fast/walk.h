// A training step forward: rows walk from knot to knot, teacher-forced, and their lines are
// searched for where they leave the tolerance. The same logic as `loop.py`, `search.py` and
// `targets.py`.

#pragma once

#include <climits>

#include "records.h"

// The walk of some rows of a batch, and everything that its backward pass needs.
template <typename T>
class Walk {
public:
    struct Knot {
        long row, index, record, before;  // `before` is the record before it, -1 at the first.
        long since;  // The observation at which that one is.
        T length;  // Time since then.
    };

    Walk(const Networks<T>& nets, const Batch<T>& batch, long from, long to)
        : nets(nets), batch(batch), layout(nets), knots(layout.size),
          points(nets.decoder.features() + padded<T>(nets.shape.dim) + nets.shape.drive),
          still(nets.shape.drive), rows(to - from) {
        for (long row = from; row < to; row++) front.push_back({row, 0, 0, -1, 0, 0});
    }

    void run() {
        for (long round = 0, records = 0; !front.empty(); round++) {
            // Without a backward pass two rounds are kept: this one and the one before.
            long begin = batch.keep ? records : round % 2 * rows;
            knots.reserve(begin + front.size());
            for (Knot& knot : front) {
                knot.record = begin++;
                integrate(knot.row, knot.since, knot.index, knots(knot.record) + layout.drive);
            }
            lined = has_lines();
            update();
            follow_lines();
            if (batch.keep) {
                rounds.push_back(records);
                if (!lined) first_lined = records + front.size();
                every.insert(every.end(), front.begin(), front.end());
                records += front.size();
            }
            advance();
        }
    }

    // In the record of a point: how far off it is, and what drove it there.
    long residual() const { return nets.decoder.features(); }
    long point_drive() const { return residual() + padded<T>(nets.shape.dim); }

    const Networks<T>& nets;
    Batch<T> batch;
    Layout<T> layout;
    Rows<T> knots, points;
    std::vector<Knot> every;  // All knots, in the order of the rounds; a record each.
    std::vector<long> rounds;  // Where each round begins.
    std::vector<Point<T>> kept, past;
    long first_lined = 0;  // The first knot that has a line.

private:
    struct Line {
        long end, decoded, missed, stop;
        std::vector<long> records;  // Of the observations after its knot, up to `decoded`.
        std::vector<T> errors;
    };
    struct Job {
        long line, index, record;
    };

    const std::vector<T> still;  // Nothing drives the start of a line.
    long rows;
    bool lined;
    std::vector<Knot> front;
    std::vector<Line> lines;
    std::vector<Job> jobs;
    std::vector<long> going, unused;
    long records = 0;

    auto part(long offset) const {
        return [this, offset](long i) { return knots(front[i].record) + offset; };
    }
    const double* clock(const Knot& knot) const { return batch.clock + knot.row * batch.time; }
    long place(const Knot& knot) const { return knot.row * batch.time + knot.index; }
    long last(const Knot& knot) const { return batch.lengths[knot.row] - 1; }
    // Integrals of the controls from one observation of a row to another.
    void integrate(long row, long from, long to, T* integrals) const {
        long controls = nets.shape.drive / 2, begin = row * batch.time + from;
        long end = row * batch.time + to;
        for (long c = 0; c < controls; c++) {
            double once = batch.once[begin * controls + c];
            integrals[c] = T(batch.once[end * controls + c] - once);
            integrals[controls + c] =
                T(batch.twice[end * controls + c] - batch.twice[begin * controls + c] -
                  once * (batch.clock[end] - batch.clock[begin]));
        }
    }

    bool free(const Knot& knot) const { return knot.index >= nets.shape.context - 1; }

    // Whether anybody looks along the lines of the front: not if they are in the context, where
    // rows are in step, and nothing there counts.
    bool has_lines() const {
        if (batch.given || !nets.shape.moves || free(front[0])) return true;
        for (const Knot& knot : front)
            if (batch.scored[place(knot) + 1]) return true;
        return false;
    }

    // The cell's update at the knots of the front, their lines, and what the step network says.
    void update() {
        long width = nets.width, inputs = nets.shape.inputs;
        for (long start = 0, count = front.size(); start < count; start += BLOCK) {
            long stop = std::min(start + BLOCK, count);
            for (long i = start; i < stop; i++) {
                const Knot& knot = front[i];
                T *at = knots(knot.record), *moved = at + layout.cell + width;
                std::fill(at, at + layout.encoder, T(0));
                std::copy_n(batch.inputs + place(knot) * inputs, inputs, at);
                if (knot.before < 0) std::fill(moved, moved + width, T(0));
                else nets.move(knots(knot.before) + layout.state, knot.length, at + layout.drive,
                               moved);
            }
            nets.encoder.first(start, stop, part(layout.input), part(layout.encoder));
            nets.encoder.rest(start, stop, part(layout.encoder), part(layout.cell));
            nets.cell.update(start, stop, part(layout.cell));
            if (lined) begin_lines(start, stop);
            if (free(front[start])) predict_steps(start, stop);
        }
    }

    void begin_lines(long start, long stop) {
        long dim = nets.shape.dim;
        nets.lines(start, stop, part(layout.state), part(layout.first), part(layout.slope));
        for (long i = start; i < stop; i++) {
            T* at = knots(front[i].record);
            nets.along(at + layout.first, at + layout.slope, 0, still.data(), at + layout.start);
        }
        nets.decoder.rest(start, stop, part(layout.start), part(layout.origin));
        for (long i = start; i < stop; i++) {
            T* origin = knots(front[i].record) + layout.origin;
            const T* value = batch.values + place(front[i]) * dim;
            T sum = 0;
            for (long d = 0; d < dim; d++) {
                T difference = origin[d] - value[d];
                sum += difference * difference;
                // What is added to a decoded displacement; else the error of the start.
                origin[d] = nets.shape.moves ? -difference : difference;
            }
            if (!nets.shape.moves) batch.start[place(front[i])] = sum / dim;
        }
    }

    void predict_steps(long start, long stop) {
        if (!nets.steps.plain) {
            nets.steps.first(start, stop, part(layout.state), part(layout.steps));
            nets.steps.rest(start, stop, part(layout.steps), part(layout.step));
        } else {
            nets.steps.rest(start, stop, part(layout.state), part(layout.step));
        }
        for (long i = start; i < stop; i++)
            batch.step[place(front[i])] = knots(front[i].record)[layout.step];
    }

    // Where the segments of the front end, and the errors of what they predict.
    void follow_lines() {
        lines.resize(front.size());
        going.clear();
        for (size_t i = 0; i < front.size(); i++) {
            const Knot& knot = front[i];
            Line& line = lines[i];
            line.records.clear(), line.errors.clear();
            line.decoded = knot.index, line.missed = LONG_MAX;
            batch.at[place(knot)] = 1;
            if (batch.given || !free(knot)) line.stop = given_end(knot);
            else going.push_back(i);
        }
        std::vector<long> searched = going;
        search();
        for (long i : searched) lines[i].stop = chosen_end(front[i], lines[i]);
        for (size_t i = 0; i < front.size(); i++) {
            const Knot& knot = front[i];
            if (batch.given || !free(knot)) batch.reach[place(knot)] = lines[i].stop;
            if (lined) queue(i, lines[i].stop + (goes_past(i) ? 1 : 0));
        }
        decode();
        for (size_t i = 0; i < front.size(); i++) keep_points(i);
    }

    long given_end(const Knot& knot) const {
        if (!batch.given) return knot.index + 1;
        long index = knot.index + 1;
        while (index < last(knot) && !batch.given[knot.row * batch.time + index]) index++;
        return index;
    }

    // Decode along the lines in `going` until each misses an observation or ends.
    void search() {
        for (long i : going) {
            long index = front[i].index + 1, start = front[i].row * batch.time;
            while (index < last(front[i]) && !(batch.changed && batch.changed[start + index]))
                index++;
            lines[i].end = index;
        }
        while (!going.empty()) {
            long ahead = std::max<long>(1, TOGETHER / going.size());
            for (long i : going) queue(i, std::min(lines[i].decoded + ahead, lines[i].end));
            decode();
            size_t left = 0;
            for (long i : going) {
                Line& line = lines[i];
                long knot = front[i].index;
                for (long index = knot + 1; index <= line.decoded; index++)
                    if (!(line.errors[index - knot - 1] < T(batch.tolerance))) {
                        line.missed = index;
                        break;
                    }
                if (line.missed == LONG_MAX && line.decoded < line.end) going[left++] = i;
            }
            going.resize(left);
        }
    }

    // Where a searched segment ends: at the last observation before a miss, or later where it has
    // to be longer or exploration says so, or where the model itself would have ended it.
    long chosen_end(const Knot& knot, const Line& line) {
        const double* times = clock(knot);
        long row = knot.row * batch.time, stop = line.end, least = knot.index + 1;
        double shortest = nets.shape.min_step * (1 - SAME_TIME);
        while (least < last(knot) && times[least] < times[knot.index] + shortest) least++;
        if (line.missed < LONG_MAX) {
            stop = std::max(line.missed - 1, least);
            while (stop < line.end && batch.explore[row + stop]) stop++;
            stop = std::min(stop, line.end);
        }
        batch.reach[place(knot)] = stop;
        batch.cut[place(knot)] =
            stop == last(knot) || (batch.changed && batch.changed[row + stop]);
        if (!batch.own[place(knot)]) return stop;
        double wanted = times[knot.index] +
                        double(nets.step_length(knots(knot.record)[layout.step]));
        if (!(times[line.end] - wanted >= shortest)) return line.end;
        long after = knot.index + 1;
        while (times[after] < wanted) after++;
        if (wanted < (times[after - 1] + times[after]) / 2) after--;
        return std::min(std::max(after, least), line.end);
    }

    // Whether a line is also fitted one observation past its end: if it was free to end there, and
    // did not go too far.
    bool goes_past(long i) const {
        const Knot& knot = front[i];
        return batch.overshoot > 0 && free(knot) && lines[i].stop < last(knot) &&
               !batch.cut[place(knot)] && lines[i].stop <= batch.reach[place(knot)];
    }

    // Put the observations up to `index` that a line has not decoded yet into the next jobs.
    void queue(long i, long index) {
        Line& line = lines[i];
        for (; line.decoded < index; line.decoded++) {
            if (unused.empty()) {
                points.reserve(records + 1);
                unused.push_back(records++);
            }
            line.records.push_back(unused.back());
            jobs.push_back({i, line.decoded + 1, unused.back()});
            unused.pop_back();
        }
    }

    // Decode all jobs and find their errors.
    void decode() {
        long dim = nets.shape.dim;
        auto features = [&](long j) { return points(jobs[j].record); };
        auto out = [&](long j) { return points(jobs[j].record) + residual(); };
        for (long start = 0, count = jobs.size(); start < count; start += BLOCK) {
            long stop = std::min(start + BLOCK, count);
            for (long j = start; j < stop; j++) {
                const Knot& knot = front[jobs[j].line];
                const T* line = knots(knot.record);
                T* integrals = features(j) + point_drive();
                integrate(knot.row, knot.index, jobs[j].index, integrals);
                nets.along(line + layout.first, line + layout.slope, offset(knot, jobs[j].index),
                           integrals, features(j));
            }
            nets.decoder.rest(start, stop, features, out);
            for (long j = start; j < stop; j++) {
                const Knot& knot = front[jobs[j].line];
                const T* origin = knots(knot.record) + layout.origin;
                const T* value = batch.values + (knot.row * batch.time + jobs[j].index) * dim;
                T *decoded = out(j), sum = 0;
                for (long d = 0; d < dim; d++) {
                    if (nets.shape.moves) decoded[d] += origin[d];
                    decoded[d] -= value[d];
                    sum += decoded[d] * decoded[d];
                }
                lines[jobs[j].line].errors.push_back(sum / dim);
            }
        }
        jobs.clear();
    }

    T offset(const Knot& knot, long index) const {
        return T(clock(knot)[index] - clock(knot)[knot.index]);
    }

    // Report the errors of a line's observations; keep what a backward pass needs.
    void keep_points(long i) {
        const Knot& knot = front[i];
        Line& line = lines[i];
        bool beyond = goes_past(i);
        for (size_t n = 0; n < line.records.size(); n++) {
            long index = knot.index + 1 + n, record = line.records[n];
            long grid = knot.row * batch.time + index;
            bool inside = index <= line.stop, next = beyond && index == line.stop + 1;
            if (inside) report(grid, record, line.errors[n]);
            if (next) batch.past[place(knot)] = line.errors[n], batch.is_past[place(knot)] = 1;
            if (batch.keep && inside)
                kept.push_back({record, knot.record, grid, offset(knot, index)});
            else if (batch.keep && next)
                past.push_back({record, knot.record, place(knot), offset(knot, index)});
            else
                unused.push_back(record);
        }
    }

    void report(long grid, long record, T error) {
        long dim = nets.shape.dim;
        const T *off = points(record) + residual(), *value = batch.values + grid * dim;
        for (long d = 0; d < dim; d++) batch.predicted[grid * dim + d] = value[d] + off[d];
        batch.error[grid] = error;
    }

    // Rows that have not arrived move on to the ends of their segments.
    void advance() {
        size_t left = 0;
        for (size_t i = 0; i < front.size(); i++) {
            Knot knot = front[i];
            long stop = lines[i].stop;
            if (stop < last(knot))
                front[left++] = {knot.row, stop, 0, knot.record, knot.index, offset(knot, stop)};
        }
        front.resize(left);
    }
};
