"""vu-mi's Chalice app: registers the blueprints, nothing else."""

from chalice.app import Chalice

from chalicelib.views import api as views_api
from chalicelib.views import fold as views_fold
from chalicelib.views import put as views_put

app = Chalice(app_name="vu-mi", configure_logs=False)
app.register_blueprint(views_api.blueprint)
app.register_blueprint(views_put.blueprint)
app.register_blueprint(views_fold.blueprint)
