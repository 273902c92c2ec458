from .drawing.plots import plot as plot
from .errors import InvalidInput as InvalidInput
from .evaluation.estimate import Estimate as Estimate
from .evaluation.metrics import Evaluation as Evaluation
from .evaluation.metrics import evaluate as evaluate
from .models.base import Model as Model
from .models.base import ModelConfig as ModelConfig
from .models.base import SteppingModel as SteppingModel
from .models.latent_ode import LatentODE as LatentODE
from .models.learning import Draws as Draws
from .models.learning import Knots as Knots
from .models.learning import Losses as Losses
from .models.ode_rnn import ODERNN as ODERNN
from .models.pcode import PCODE as PCODE
from .models.pcode import find_knots as find_knots
from .models.rnn import RNN as RNN
from .models.storage import load as load
from .paper.tasks.load import TaskData as TaskData
from .paper.tasks.load import load_task as load_task
from .path import Path as Path
from .path import Status as Status
from .registry import register as register
from .sequences import Sequences as Sequences
from .training.fit import fit as fit
from .training.recipe import Recipe as Recipe
from .training.run import Run as Run

__version__: str
