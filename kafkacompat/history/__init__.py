"""What clients did to a broker and saw of it, and whether a sound broker may have shown them that.

`events` is the record, `index` what is known from it, `checks` the judgement, `counts` whether there is enough to judge
by; `run`, with the roles beside it, is how a record is made.
"""
