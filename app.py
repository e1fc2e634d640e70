"""vu-mi's Chalice app: registers the routes, the authorizer and the consumers, nothing else."""

from chalice.app import Chalice

from chalicelib.api import TABLE
from chalicelib.aws import authorizer, chalice_routes
from chalicelib.events import distribute as events_distribute
from chalicelib.events import fire as events_fire
from chalicelib.events import tick as events_tick
from chalicelib.views import fold as views_fold
from chalicelib.views import put as views_put
from chalicelib.wallets import archive_consumer as wallets_archive

app = Chalice(app_name="vu-mi", configure_logs=False)
chalice_routes.register(app, TABLE)
app.register_blueprint(authorizer.blueprint)
app.register_blueprint(views_put.blueprint)
app.register_blueprint(views_fold.blueprint)
app.register_blueprint(events_tick.blueprint)
app.register_blueprint(events_distribute.blueprint)
app.register_blueprint(events_fire.blueprint)
app.register_blueprint(wallets_archive.blueprint)
