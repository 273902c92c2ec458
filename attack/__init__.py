"""An attack on the package: kills, fuzzed calls and commands, damaged files, full disks."""
