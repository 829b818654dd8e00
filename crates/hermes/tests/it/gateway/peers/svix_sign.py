"""Signs an event as Svix does, and prints its headers."""

import datetime
import sys

from svix.webhooks import Webhook

secret, message, body = sys.argv[1:4]
now = datetime.datetime.now(datetime.timezone.utc)
signature = Webhook(secret).sign(message, now, body)
print(f"{message}\n{int(now.timestamp())}\n{signature}", end="")
