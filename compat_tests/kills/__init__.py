"""The real process, killed with SIGKILL at random moments under load (`make crash`)."""
