// SPDX-License-Identifier: Apache-2.0
// The command line of the experiments' programs. They are ordinary programs: nothing here knows Hawser.
#ifndef HAWSER_BENCH_EXPERIMENTS_OPTIONS_H_
#define HAWSER_BENCH_EXPERIMENTS_OPTIONS_H_

#include <cstdint>
#include <string>

namespace experiments {

struct Options {
  std::string work = "matmul";
  int size = 256;
  int rounds = 1;
  int columns = 64;      ///< Of a work-group of 64 where the work has two dimensions.
  double seconds = 0;    ///< Of launching; 0: until `repeat` launches.
  int repeat = 0;        ///< 0: until `seconds` are over.
  double period_ms = 0;  ///< A launch every so often; 0: when the one before is done.
  double delay_ms = 0;   ///< Begins so long after the common start.
  double think_us = 0;   ///< Between a launch's end and the next, on average.
  unsigned seed = 1;     ///< Of the think times, which vary by half.
  int depth = 1;         ///< Launches under way at a time.
  int warm = 1;          ///< Launches before the start, which do not count.
  int slots = 0;         ///< Not 0: launches only in every second slot of time, so many in all; see runner.h.
  double slot_ms = 0;    ///< How long a slot is.
  int side = 0;          ///< Which of the two that take turns this is.
  std::string start;     ///< A file that will hold the common start, CLOCK_MONOTONIC in nanoseconds; empty: at once.
  std::string until;     ///< With `repeat`: says "done" on stderr then, and goes on until this file exists.
  std::string device;    ///< Part of the device's name; empty: the first.
};

extern const char kUsage[];

/// Empty, or what is wrong.
std::string Parse(int argc, char** argv, Options* options);

}  // namespace experiments

#endif  // HAWSER_BENCH_EXPERIMENTS_OPTIONS_H_
