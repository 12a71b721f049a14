"""What devices and collectors say to each other, spelled once (docs/protocol.md).

Below both of them: paths and topics, messages, terms and their pin, names, authentication, the
layout of a batch, limits. Each transport maps the messages; nothing else spells them.
"""
