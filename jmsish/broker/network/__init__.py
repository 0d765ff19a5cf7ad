"""Routers: a broker without queues, whose messages go straight from who sends to who receives, over other routers too.

`reach` knows what can be reached over whom, `updates` and `control` how routers tell each other, `doors` who may come
in by which door; `node` is the router itself, `connection` one of its connections, `ingress` and `egress` are the links
of it, `address` is where the two meet, `passage` one message on its way.
"""
