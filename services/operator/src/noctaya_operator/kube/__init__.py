"""A small controller runtime over the official client: it knows Kubernetes and nothing of Noctaya.

`client` speaks to the API server in plain dictionaries; `reflector` keeps a `cache` of one kind; `workqueue`
and `controller` turn changes into reconciles; `leader` elects one active process; `events` tells people.
Clocks and randomness are injected, there is no module state, and every failure of the server is met with a
bounded, jittered retry.
"""
