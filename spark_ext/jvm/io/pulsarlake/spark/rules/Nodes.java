package io.pulsarlake.spark.rules;

import java.util.List;
import java.util.function.UnaryOperator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** What rules do with the nodes of a plan. */
final class Nodes {
  private Nodes() {}

  /** A function of each node, as Spark takes it. It gives null where it leaves a node as it is. */
  static <N> AbstractPartialFunction<N, N> replaced(UnaryOperator<N> by) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(N node) {
        return true; // To find out would be to make what takes its place.
      }

      @Override
      public N apply(N node) {
        N found = by.apply(node);
        return found == null ? node : found;
      }
    };
  }

  static <T> Seq<T> seq() {
    return seq(List.of());
  }

  static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
