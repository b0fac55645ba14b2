"""Client quotas: how much each client uses, and how long it is throttled for; pure rules, times are passed in."""
