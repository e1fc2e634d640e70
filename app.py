"""vu-mi's Chalice app: registers the routes and the consumers, nothing else."""

from chalice.app import Chalice

from chalicelib.api import TABLE
from chalicelib.aws import chalice_routes, consumers

app = Chalice(app_name="vu-mi", configure_logs=False)
chalice_routes.register(app, TABLE)
app.register_blueprint(chalice_routes.blueprint)
app.register_blueprint(consumers.blueprint)
