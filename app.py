"""vu-mi's Chalice app: registers the blueprints, nothing else."""

from chalice.app import Chalice

from chalicelib.aws import authorizer
from chalicelib.events import api as events_api
from chalicelib.events import distribute as events_distribute
from chalicelib.events import fire as events_fire
from chalicelib.events import tick as events_tick
from chalicelib import description
from chalicelib.http import page as views_page
from chalicelib.views import fold as views_fold
from chalicelib.views import history_routes as views_history_api
from chalicelib.views import owner_routes as views_owner_api
from chalicelib.views import put as views_put
from chalicelib.views import routes as views_routes
from chalicelib.wallets import api as wallets_api
from chalicelib.wallets import archive_consumer as wallets_archive

app = Chalice(app_name="vu-mi", configure_logs=False)
app.register_blueprint(views_routes.blueprint)
app.register_blueprint(views_history_api.blueprint)
app.register_blueprint(views_owner_api.blueprint)
app.register_blueprint(views_page.blueprint)
app.register_blueprint(description.blueprint)
app.register_blueprint(authorizer.blueprint)
app.register_blueprint(events_api.blueprint)
app.register_blueprint(wallets_api.blueprint)
app.register_blueprint(views_put.blueprint)
app.register_blueprint(views_fold.blueprint)
app.register_blueprint(events_tick.blueprint)
app.register_blueprint(events_distribute.blueprint)
app.register_blueprint(events_fire.blueprint)
app.register_blueprint(wallets_archive.blueprint)
