"""nginx of the distribution: one worker, keep-alive upstream, no buffering of responses, no access log."""

from __future__ import annotations

import asyncio
import os

from ..children import ChildError, free_port
from ..lab import Lab
from ..procfs import child_pids
from .peer import Peer

CONFIG = """\
{user}
worker_processes 1;
worker_rlimit_nofile 16384;
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/nginx-error.log warn;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    keepalive_requests 100000000;
    client_max_body_size 0;
    upstream backend {{
        server 127.0.0.1:{upstream};
        keepalive 1024;
        keepalive_requests 100000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://backend;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_buffering off;
            proxy_read_timeout 600s;
        }}
    }}
}}
"""


async def start_nginx(lab: Lab, upstream: int) -> Peer:
    """Start nginx before the port `upstream`; its worker is what is measured."""
    if lab.tools.nginx is None:
        raise ChildError("nginx is not installed")
    directory = lab.directory / "nginx"
    directory.mkdir(exist_ok=True)
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""  # else the worker can't write below our directory
    config = directory / "nginx.conf"
    config.write_text(CONFIG.format(user=user, directory=directory, port=port, upstream=upstream))
    child = await lab.start("nginx", [lab.tools.nginx, "-p", str(directory), "-c", str(config)])
    await child.listening(port)
    workers = child_pids(child.pid)
    while not workers:
        await asyncio.sleep(0.02)
        workers = child_pids(child.pid)
    return Peer(name="nginx", port=port, pids=workers)
