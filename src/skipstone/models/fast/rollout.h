// Rollouts without gradients: rows read their context, then step on their own predictions until
// their end. The same logic as `read_context` in `loop.py`, and as `rollout.py`.

#pragma once

#include <cstdint>
#include <limits>

#include "networks.h"

// Contexts and ends of rollouts. Python fills it in; see `_Rollout` in `native.py`.
template <typename T>
struct Rollout {
    long rows, context, max_updates;  // `max_updates` is 0 for no limit.
    double unit, shortest, step;  // A remainder below `shortest` is taken in; `step` 0: its own.
    const T *inputs, *values;  // Encoder inputs of the context, controls included; last values.
    const double *gaps, *start, *end;  // Time before each observation; times of start and end.
    // Controls after the context: (rows, changes) and their values, which Python looks up in.
    long controls, changes;
    double slack;
    const double *control_times, *next_change;  // `next_change` is null if they drive segments:
    const double *once, *twice;  // then integrals up to each change, else null.
    const T* control_values;
};

constexpr double SHORTEST_CHORD = 0.1, LONGEST_CHORD = 1.0;  // `CHORD` in `pcode.py`.

// The rollouts of some rows, and their segments in the order of the rounds.
template <typename T>
class Roll {
public:
    struct Row {
        long row;
        double time;
    };

    Roll(const Networks<T>& nets, const Rollout<T>& data, long from, long to)
        : nets(nets), data(data), width(nets.width), dim(nets.shape.dim), wide(padded<T>(dim)),
          segments(2 * width + wide), records(record_size()) {
        for (long row = from; row < to; row++) front.push_back({row, data.start[row]});
        records.reserve(front.size());
        integrals.resize(nets.shape.drive);
    }

    // From the state after observations that all rows share, `read` of them.
    void run(const T* shared, long read) {
        read_context(shared, read, data.context);
        long count = 0;
        for (rounds = 1; !front.empty(); rounds++) {
            first_of_round.push_back(count);
            segments.reserve(count + front.size());
            follow_lines(count);
            count += front.size();
            every.insert(every.end(), front.begin(), front.end());
            advance();
            if (stuck) return;
        }
    }

    // The state of the first row after some observations, from none.
    void read_first(long read, T* found) {
        std::vector<T> nothing(width);
        read_context(nothing.data(), 0, read);
        std::copy_n(state()(0), width, found);
    }

    const Networks<T>& nets;
    const Rollout<T>& data;
    long width, dim, wide, rounds = 0;
    Rows<T> segments;  // First, slope and origin of each.
    std::vector<Row> every;  // Row and time of each.
    std::vector<long> first_of_round;
    std::vector<std::pair<long, double>> unfinished;  // Rows that used all their updates, and when.
    bool stuck = false;

private:
    std::vector<Row> front;
    Rows<T> records;
    std::vector<T> integrals;

    // A record: encoder input and features, the cell's row, features of the step network, its
    // output, and three points along the line with features and output each.
    long input() const { return 0; }
    long encoder() const { return padded<T>(nets.shape.inputs); }
    long cell() const { return encoder() + nets.encoder.features(); }
    long steps() const { return cell() + 7 * width; }
    long step() const { return steps() + nets.steps.features(); }
    long value() const { return step() + Lanes<T>::panel; }
    long points() const { return value() + wide; }
    long point_size() const { return nets.decoder.features() + wide; }
    long record_size() const { return points() + 3 * point_size(); }

    auto part(long offset) const {
        return [this, offset](long i) { return records(i) + offset; };
    }
    auto state() const { return part(cell() + 6 * width); }

    // Observations `from` to `to` of the context.
    void read_context(const T* before, long from, long to) {
        long inputs = nets.shape.inputs;
        for (size_t i = 0; i < front.size(); i++) {
            std::copy_n(before, width, state()(i));
            std::fill_n(part(value())(i), wide, T(0));
            std::copy_n(data.values + front[i].row * dim, dim, part(value())(i));
            std::fill_n(records(i), encoder(), T(0));
        }
        for (long index = from; index < to; index++) {
            for (size_t i = 0; i < front.size(); i++) {
                long place = front[i].row * data.context + index;
                std::copy_n(data.inputs + place * inputs, inputs, records(i));
                if (nets.shape.drive) context_drive(place);
                nets.move(state()(i), T(data.gaps[place]), integrals.data(),
                          part(cell() + width)(i));
            }
            update();
        }
    }

    // Encode the inputs and update the cell.
    void update() {
        for (long start = 0, count = front.size(); start < count; start += BLOCK) {
            long stop = std::min(start + BLOCK, count);
            nets.encoder.first(start, stop, part(input()), part(encoder()));
            nets.encoder.rest(start, stop, part(encoder()), part(cell()));
            nets.cell.update(start, stop, part(cell()));
        }
    }

    // Segments of the front, which begin at number `count`.
    void follow_lines(long count) {
        auto first = [&](long i) { return segments(count + i); };
        auto slope = [&](long i) { return segments(count + i) + width; };
        nets.lines(0, front.size(), state(), first, slope);
        if (data.step) return;
        for (long start = 0, all = front.size(); start < all; start += BLOCK) {
            long stop = std::min(start + BLOCK, all);
            if (!nets.steps.plain) nets.steps.first(start, stop, state(), part(steps()));
            if (nets.steps.plain) nets.steps.rest(start, stop, state(), part(step()));
            else nets.steps.rest(start, stop, part(steps()), part(step()));
        }
    }

    // The control that holds at a time; before all of them, the first.
    long control_at(long row, double time) const {
        const double* times = data.control_times + row * data.changes;
        long after = std::upper_bound(times, times + data.changes, time + data.slack) - times;
        return std::max(0L, after - 1);
    }

    // A time of the controls, in the model's unit, and their integrals up to it.
    double integrate(long row, double time, long control, double* once, double* twice) const {
        long place = row * data.changes + control_at(row, time);
        double since = (time - data.control_times[place]) / data.unit;
        long at = place * data.controls + control;
        double held = data.control_values[at];
        *once = data.once[at] + held * since;
        *twice = data.twice[at] + data.once[at] * since + held * since * since / 2;
        return (data.control_times[place] - data.control_times[row * data.changes]) / data.unit +
               since;
    }

    // Integrals of the controls over some time from where a row is.
    void drive(const Row& row, T length) {
        if (!nets.shape.drive) return;
        for (long c = 0; c < data.controls; c++) {
            double once, twice, once_then, twice_then;
            double now = integrate(row.row, row.time, c, &once, &twice);
            double end = row.time + double(length) * data.unit;
            double then = integrate(row.row, end, c, &once_then, &twice_then);
            integrals[c] = T(once_then - once);
            integrals[data.controls + c] = T(twice_then - twice - once * (then - now));
        }
    }

    // The same over the interval before an observation of the context, where the control of the one
    // before holds; it stands last in the encoder's input.
    void context_drive(long place) {
        double gap = data.gaps[place];
        long inputs = nets.shape.inputs;
        for (long c = 0; c < data.controls; c++) {
            bool first = place % data.context == 0;
            double held = first ? 0 : data.inputs[place * inputs - data.controls + c];
            integrals[c] = T(held * gap);
            integrals[data.controls + c] = T(held * gap * gap / 2);
        }
    }

    // Where segments end; their ends decoded; the cell updated where rows go on.
    void advance() {
        long count = front.size(), points_of_row = nets.shape.motion ? 3 : 2;
        std::vector<double> following(count);
        std::vector<T> lengths(count);
        for (long i = 0; i < count; i++) {
            long row = front[i].row;
            double now = front[i].time, limit = data.end[row];
            if (data.controls && data.next_change)
                limit = std::min(limit,
                                 data.next_change[row * data.changes + control_at(row, now)]);
            T length = data.step ? T(data.step / data.unit) : nets.step_length(records(i)[step()]);
            double wanted = now + double(length) * data.unit;
            following[i] = limit - wanted < data.shortest ? limit : wanted;
            lengths[i] = T((following[i] - now) / data.unit);
            if (!(following[i] > now)) stuck = true;
        }
        if (stuck) return;
        decode(lengths, points_of_row);
        long left = 0;
        bool last = rounds == data.max_updates;
        for (long i = 0; i < count; i++) {
            long row = front[i].row;
            if (!(following[i] < data.end[row])) continue;
            if (last) {
                unfinished.emplace_back(row, following[i]);
                continue;
            }
            go_on(i, left, lengths[i], following[i]);
            front[left++] = {row, following[i]};
        }
        front.resize(left);
        update();
    }

    // Decode lines at their starts, their ends and, for rates, shortly before those.
    void decode(const std::vector<T>& lengths, long each) {
        long count = front.size(), base = every.size() - count;
        auto point = [&](long n) { return records(n / each) + points() + n % each * point_size(); };
        auto out = [&](long n) { return point(n) + nets.decoder.features(); };
        for (long start = 0, all = count * each; start < all; start += BLOCK) {
            long stop = std::min(start + BLOCK, all);
            for (long n = start; n < stop; n++) {
                const T* line = segments(base + n / each);
                T length = lengths[n / each], at = n % each == 0 ? 0 : length;
                if (n % each == 2) at -= chord(length);
                drive(front[n / each], at);
                nets.along(line, line + width, at, integrals.data(), point(n));
            }
            nets.decoder.rest(start, stop, point, out);
        }
        for (long i = 0; i < count; i++) {
            T* origin = segments(base + i) + 2 * width;
            const T *value_now = part(value())(i), *start = out(i * each);
            for (long d = 0; d < dim; d++)
                origin[d] = nets.shape.moves ? value_now[d] - start[d] : T(0);
        }
    }

    static T chord(T length) {
        return std::min(std::max(length, T(SHORTEST_CHORD)), T(LONGEST_CHORD));
    }

    // Row `i` becomes row `left`, just before its update: its values, inputs and moved state.
    void go_on(long i, long left, T length, double time) {
        const Row& row = front[i];
        T *to = records(left), *values = to + value();
        const T* origin = segments(every.size() - front.size() + i) + 2 * width;
        const T *at_end = records(i) + points() + point_size() + nets.decoder.features(),
                *before = at_end + point_size();
        T rate = T(nets.shape.min_step) / chord(length);
        for (long d = 0; d < dim; d++) {
            values[d] = origin[d] + at_end[d];
            to[d] = values[d];
            if (nets.shape.motion) to[dim + d] = (at_end[d] - before[d]) * rate;
        }
        if (data.controls) {
            long position = row.row * data.changes + control_at(row.row, time);
            std::copy_n(data.control_values + position * data.controls, data.controls,
                        to + dim * (nets.shape.motion ? 2 : 1));
        }
        drive(row, length);
        nets.move(state()(i), length, integrals.data(), to + cell() + width);
    }
};
