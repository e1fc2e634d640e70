"""vu-mi's Chalice app: registers the blueprints, nothing else."""

from chalice.app import Chalice

from chalicelib import authorize, openapi
from chalicelib.timers import api as timers_api
from chalicelib.timers import distribute as timers_distribute
from chalicelib.timers import fire as timers_fire
from chalicelib.timers import tick as timers_tick
from chalicelib.views import api as views_api
from chalicelib.views import fold as views_fold
from chalicelib.views import history_api as views_history_api
from chalicelib.views import owner_api as views_owner_api
from chalicelib.views import page as views_page
from chalicelib.views import put as views_put
from chalicelib.wallets import api as wallets_api
from chalicelib.wallets import archive as wallets_archive

app = Chalice(app_name="vu-mi", configure_logs=False)
app.register_blueprint(views_api.blueprint)
app.register_blueprint(views_history_api.blueprint)
app.register_blueprint(views_owner_api.blueprint)
app.register_blueprint(views_page.blueprint)
app.register_blueprint(openapi.blueprint)
app.register_blueprint(authorize.blueprint)
app.register_blueprint(timers_api.blueprint)
app.register_blueprint(wallets_api.blueprint)
app.register_blueprint(views_put.blueprint)
app.register_blueprint(views_fold.blueprint)
app.register_blueprint(timers_tick.blueprint)
app.register_blueprint(timers_distribute.blueprint)
app.register_blueprint(timers_fire.blueprint)
app.register_blueprint(wallets_archive.blueprint)
