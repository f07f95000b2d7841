"""The symptoms that a ledger file is looked through for: what each asks, how it is told, its cause and the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from otel_context_ledger.cli.symptoms import context, reuse, work
from otel_context_ledger.cli.symptoms.case import CANNOT_TELL, FOUND, NOT_FOUND, Case, Finding

__all__ = ["CANNOT_TELL", "FOUND", "NOT_FOUND", "SYMPTOMS", "Case", "Finding", "Symptom"]


@dataclass(frozen=True, slots=True)
class Symptom:
    """A question that somebody on call asks; `test` answers it from a case alone. `names` says that the question asks
    which, and each sentence of evidence begins with it."""

    id: str
    question: str
    test: Callable[[Case], Finding]
    cause: str
    fix: str
    names: bool = False

    def reply(self, finding: Finding) -> str:
        """The answer to the question where the symptom was found."""
        heads = [head for head, colon, _ in (text.partition(": ") for text in finding.evidence) if colon]
        return f"{', '.join(heads)}." if self.names and heads else "Yes."


SYMPTOMS = (
    Symptom(
        "constraint_lost_at_high_hits", "Is the hit ratio high and a constraint violated all the same?",
        context.lost_at_high_hits,
        "A cache hit says that the prompt is the one before, not that it is right: what is lost stays lost, cheaply.",
        "Put the constraint back where nothing is compacted (system part or rules file) and rebuild the context.",
    ),
    Symptom(
        "model_switch_prefill", "Was a long prefix read anew after a switch of the model?", reuse.after_model_switch,
        "Every model has a cache of its own, so the first call after a switch pays for the whole prompt.",
        "Stay with one model within a session; give work for another model a session of its own.",
    ),
    Symptom(
        "sessions_differ", "Do sessions at one state of the repository behave differently?", context.other_contexts,
        "They are not given the same context: what differs stands in the evidence.",
        "Make the named parts equal (rules files, tools, model, effort), or accept that these are two agents.",
    ),
    Symptom(
        "tool_errors", "Do tools answer with parameter or permission errors?", context.tool_errors,
        "The tools in the prompt are not those that are live: schema, permission or side effect moved; or the model "
        "errs (detail model).",
        "Ask the servers for their tools again (tools/list), send what they say, and begin a new session.",
    ),
    Symptom(
        "constraint_lost_in_large_window", "Is a local constraint violated although the window is large?",
        context.lost_in_large_window,
        "Capacity is not memory: the constraint is not in what is sent, however much room there is.",
        "Send the constraint with every request; a larger window does not bring it back.",
    ),
    Symptom(
        "sessions_cheaper_successes_not", "Does the cost per session fall, and the cost per success not?",
        work.cheaper_sessions,
        "Cheap sessions that fail are tried again; their cost hides in the number of sessions.",
        "Go by cost per successful task (context-ledger tasks), and look at what the failed attempts lacked.",
    ),
    Symptom(
        "switch_prefill", "Which switch caused a prompt to be read anew?", reuse.which_switch,
        "A part of the prompt before the history, or the history itself, was not sent as before.",
        "Undo the dearest change first; context-ledger explain ID says where it is and what to do about it.",
        names=True,
    ),
    Symptom(
        "goal_promoted", "Did a summary make a finished fact of an open goal?", context.promoted_goal,
        "The summary tells of work as done that nothing shows to be done.",
        "Begin a new session from the goal and its open todos, and do not go on from that summary.",
    ),
    Symptom(
        "deleted_files", "Does the context point at files that are deleted?", context.deleted_files,
        "The history, or the index behind it, is older than the repository.",
        "Read again or rebuild the index before going on; new_session if the baseline moved.",
    ),
    Symptom(
        "quota_mixed_with_dollars", "Is a plan's quota mixed with dollars?", work.mixed_money,
        "A membership pays for some of the calls, so that their dollars are zero or made up in a sum of money.",
        "Read the two apart (context-ledger tasks does), and name the surface of a gateway in CONTEXT_LEDGER_SURFACES.",
    ),
    Symptom(
        "slow_first_token", "Does a large window slow the first token without need?", reuse.slow_large_window,
        "Prompts that fit the smaller window are served by the slower, larger one.",
        "Use the model with the smaller window until the working set outgrows it.",
    ),
    Symptom(
        "constraint_worn_away", "Was one constraint worn away over several compactions?", context.worn_away,
        "Each summary is made from the one before, and each loses a little.",
        "Let constraints be sent from outside the history (rules file), or rebuild from the original after each one.",
    ),
    Symptom(
        "one_model_many_names", "Does one model stand under several names in several products?", work.many_names,
        "Products and gateways name it their own way; each has its own cache, window, price or quota.",
        "Compare by the model that served, never by id alone, and send a session to one product.",
    ),
    Symptom(
        "retry_without_history", "Did a retry in a new session lose its history?", work.lost_retry,
        "The new session began from nothing, so what the attempt before had found out is paid for again or lost.",
        "Resume the session, or hand on a summary that was validated.",
    ),
    Symptom(
        "patch_from_bad_summary", "Does a wrong patch go back to the summary that was inherited?",
        context.patch_from_summary,
        "The attempt went by a summary that had failed its validation.",
        "Discard it: begin a new session from the last context before that compaction.",
    ),
    Symptom(
        "repeated_reads", "Are files of the repository read again and again?", context.repeated_reads,
        "The same lines come into the history more than once at one state of the file.",
        "Let reads ask for what is missing only, or answer a repeated read from the history.",
    ),
)  # fmt: skip
