"""What a run left behind, and whether it kept its promises: judged from files alone.

The devices' ledgers, the collector's store, a log of the wire and a diary of when the collector was
up. The store is read by its tables, not by the collector's code: what is judged here must not be
the judge.
"""
