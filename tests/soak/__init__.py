"""Eight sites on a bad network, whose processes are killed and stopped at random: `make soak`."""
