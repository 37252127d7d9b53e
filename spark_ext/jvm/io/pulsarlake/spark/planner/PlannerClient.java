package io.pulsarlake.spark.planner;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.pulsarlake.spark.planner.Messages.Question;
import io.pulsarlake.spark.planner.Messages.Reply;

/**
 * The planner, as a catalog asks it.
 *
 * @param config the settings file of the catalog; null: the environment alone
 */
public record PlannerClient(Planner planner, String config) {
  /** The answer to a question. Throws the planner's error as Spark's. */
  public <A> A ask(Question<A> question) {
    Reply reply = planner.call(config, question);
    if (reply.failure() != null) {
      throw Errors.of(reply.failure());
    }
    return answer(reply, question);
  }

  /** The answer to a question; null where what was asked for does not exist. */
  public <A> A find(Question<A> question) {
    Reply reply = planner.call(config, question);
    if (reply.failure() != null && reply.failure().notFound()) {
      return null;
    }
    if (reply.failure() != null) {
      throw Errors.of(reply.failure());
    }
    return answer(reply, question);
  }

  private static <A> A answer(Reply reply, Question<A> question) {
    try {
      return Planner.JSON.treeToValue(reply.answer(), question.answer());
    } catch (JsonProcessingException other) {
      throw Errors.refused("an answer of the planner cannot be read: " + other.getMessage());
    }
  }
}
