"""The protocol between devices and collectors, defined in one place (docs/protocol.md).

Both sides rest on it: paths and topics, messages, answers, terms and their pin, names,
authentication, the layout of a batch, limits. Each transport maps the messages; nothing else spells
them out.
"""
