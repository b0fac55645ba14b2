"""A simulation of instances' traffic control: the functions of the broker (`kafkacompat.tenancy.traffic`) over recorded or made traffic."""
