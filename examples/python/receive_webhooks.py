"""Verifies and prints webhooks: WEBHOOK_SECRET=whsec_... PORT=3000 python receive_webhooks.py"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pilothouse import webhooks

SECRET, PORT = os.environ["WEBHOOK_SECRET"], int(os.environ.get("PORT", "3000"))
# Ids of processed events. An event can be delivered more than once, so a real receiver stores them.
processed: set[str] = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        try:
            event = webhooks.verify(body=body, headers=dict(self.headers), secret=SECRET)
        except webhooks.WebhookVerificationError as error:
            self.log_error("refused a delivery: %s", error)
            self.send_response(400)
        else:
            if event.get("id", "") not in processed:
                print(event["type"], event["data"], flush=True)
            processed.add(event.get("id", ""))
            self.send_response(204)
        self.end_headers()


server = ThreadingHTTPServer(("127.0.0.1", PORT), Receiver)
print(f"listening on port {PORT}", flush=True)
server.serve_forever()
