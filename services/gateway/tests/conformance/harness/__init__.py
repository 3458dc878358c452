"""What the suite stands on: raw sockets, a scripted backend, the gateway process and its neighbours."""
