"""vu-mi's Chalice app: registers the blueprints, nothing else."""

from chalice.app import Chalice

from chalicelib.aws import authorizer, consumers
from chalicelib.events import api as events_api
from chalicelib.http import openapi
from chalicelib.http import page as views_page
from chalicelib.views import history_routes as views_history_api
from chalicelib.views import owner_routes as views_owner_api
from chalicelib.views import routes as views_routes
from chalicelib.wallets import api as wallets_api

app = Chalice(app_name="vu-mi", configure_logs=False)
app.register_blueprint(views_routes.blueprint)
app.register_blueprint(views_history_api.blueprint)
app.register_blueprint(views_owner_api.blueprint)
app.register_blueprint(views_page.blueprint)
app.register_blueprint(openapi.blueprint)
app.register_blueprint(authorizer.blueprint)
app.register_blueprint(events_api.blueprint)
app.register_blueprint(wallets_api.blueprint)
app.register_blueprint(consumers.blueprint)
