"""What instances use of a broker: figures for metrics and commands, and an hourly record from which bills can be made."""
