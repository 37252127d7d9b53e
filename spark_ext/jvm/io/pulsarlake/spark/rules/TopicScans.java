package io.pulsarlake.spark.rules;

import io.pulsarlake.spark.planner.Messages.ColdPlan;
import io.pulsarlake.spark.planner.Messages.ColdRead;
import io.pulsarlake.spark.planner.Messages.HotRead;
import io.pulsarlake.spark.planner.Messages.PlanReads;
import io.pulsarlake.spark.planner.Messages.ReadPlans;
import io.pulsarlake.spark.planner.Messages.TaskPlan;
import io.pulsarlake.spark.planner.PlannerClient;
import io.pulsarlake.spark.reads.ColdFiles;
import io.pulsarlake.spark.reads.HotRows;
import io.pulsarlake.spark.reads.HotTable;
import io.pulsarlake.spark.reads.HotTable.HotScan;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.V2ScanRelationPushDown$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a query reads of topics, asked of the planner at once: the files that its filters leave of
 * cold tables, values in place of aggregates that the Delta log knows, and the tasks of hot rows.
 *
 * <p>Before Spark looks at sizes, so that it chooses joins by the files that are left. Without this
 * rule queries give the same rows: a scan then asks when it runs, as does one of which Spark's later
 * rules have changed the columns.
 */
final class TopicScans extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof Subquery) {
      return plan; // Spark optimizes it alone, too: it is planned with the query that it is part of.
    }
    // Spark's own rule for these comes one batch later, and has nothing left to do then.
    LogicalPlan built = plan.transformDownWithSubqueries(Nodes.replaced(TopicScans::withHotScan));
    Questions questions = new Questions();
    collect(built, questions);
    Map<Cold, ColdPlan> cold = questions.answered();
    return cold.isEmpty()
        ? built
        : built.transformDownWithSubqueries(Nodes.replaced(node -> replaced(node, cold)));
  }

  /** A projection and a filter over hot rows, with the scan that has their columns and filters. */
  private static LogicalPlan withHotScan(LogicalPlan node) {
    var found = PhysicalOperation$.MODULE$.unapply(node);
    return found.isDefined()
            && found.get()._3() instanceof DataSourceV2Relation relation
            && relation.table() instanceof HotTable
        ? V2ScanRelationPushDown$.MODULE$.apply(node)
        : null;
  }

  /** Notes what a plan reads; of a scan below its filter or aggregate, what these leave of it. */
  private static void collect(LogicalPlan node, Questions questions) {
    LogAggregates aggregates = LogAggregates.of(node);
    ColdFiles files = coldFiles(node);
    HotReads hot = HotReads.of(node);
    if (aggregates != null) {
      questions.add(aggregates.files(), aggregates.read());
    } else if (files != null) {
      questions.add(files, read(node, files));
    } else if (hot != null) {
      questions.add(hot.rows(), hot.read());
    } else {
      if (node instanceof DataSourceV2ScanRelation relation
          && relation.scan() instanceof HotScan scan) {
        questions.add(scan);
      }
      CollectionConverters.asJava(node.children()).forEach(one -> collect(one, questions));
    }
    for (LogicalPlan one : CollectionConverters.asJava(node.subqueries())) {
      collect(one, questions);
    }
  }

  /** What takes the place of a node; null: it stays. */
  private static LogicalPlan replaced(LogicalPlan node, Map<Cold, ColdPlan> answers) {
    LogAggregates aggregates = LogAggregates.of(node);
    if (aggregates != null) {
      ColdRead asked = aggregates.read();
      ColdPlan answer = answers.get(new Cold(aggregates.files().planner(), asked));
      if (answer == null || answer.values() != null) {
        return answer == null ? null : aggregates.answered(answer.values());
      }
      // The same question without aggregates has this answer, too.
      ColdRead files = aggregates.files().read();
      answers.putIfAbsent(new Cold(aggregates.files().planner(), files), answer);
      return null;
    }
    ColdFiles files = coldFiles(node);
    if (files == null) {
      return null;
    }
    ColdRead asked = read(node, files);
    ColdPlan answer = answers.get(new Cold(files.planner(), asked));
    if (answer == null) {
      return null;
    }
    ColdFiles planned = files.planned(asked, answer);
    return node instanceof Filter filter
        ? filter.withNewChildren(
            Nodes.seq(List.of(reading((LogicalRelation) filter.child(), planned))))
        : reading((LogicalRelation) node, planned);
  }

  /** The files of a cold relation, with a filter or without, that has not asked; else null. */
  private static ColdFiles coldFiles(LogicalPlan node) {
    LogicalPlan leaf = node instanceof Filter filter ? filter.child() : node;
    ColdFiles files = leaf instanceof LogicalRelation relation ? files(relation) : null;
    return files == null || files.asked() ? null : files;
  }

  private static ColdRead read(LogicalPlan node, ColdFiles files) {
    if (!(node instanceof Filter filter)) {
      return files.read();
    }
    List<Expression> conjuncts = new ArrayList<>();
    split(filter.condition(), conjuncts);
    // A column may be spelled in the query in another case than in the table.
    List<Attribute> columns = List.copyOf(CollectionConverters.asJava(filter.child().output()));
    return files.read(
        DataSourceStrategy$.MODULE$.normalizeExprs(Nodes.seq(conjuncts), Nodes.seq(columns)), List.of());
  }

  private static LogicalRelation reading(LogicalRelation relation, ColdFiles files) {
    HadoopFsRelation old = (HadoopFsRelation) relation.relation();
    HadoopFsRelation now =
        old.copy(
            files,
            old.partitionSchema(),
            old.dataSchema(),
            old.bucketSpec(),
            old.fileFormat(),
            old.options(),
            old.sparkSession());
    return relation.copy(
        now, relation.output(), relation.catalogTable(), relation.isStreaming(), relation.stream());
  }

  private static void split(Expression condition, List<Expression> into) {
    if (condition instanceof And and) {
      split(and.left(), into);
      split(and.right(), into);
    } else {
      into.add(condition);
    }
  }

  /** Those of a cold table's relation; null for any other. */
  static ColdFiles files(LogicalRelation relation) {
    return relation.relation() instanceof HadoopFsRelation found
            && found.location() instanceof ColdFiles files
        ? files
        : null;
  }

  /** What is asked of one planner, with the settings of one catalog. */
  private record Cold(PlannerClient planner, ColdRead read) {}

  /** What a plan asks, each question once: of all catalogs one. */
  private static final class Questions {
    private final Map<PlannerClient, Map<ColdRead, ColdPlan>> cold = new LinkedHashMap<>();
    private final Map<PlannerClient, Map<HotRead, List<Consumer<TaskPlan>>>> hot =
        new LinkedHashMap<>();

    private void add(ColdFiles files, ColdRead read) {
      cold.computeIfAbsent(files.planner(), one -> new LinkedHashMap<>()).put(read, null);
    }

    private void add(HotScan scan) {
      add(scan.planner(), scan.read(), scan::planned);
    }

    private void add(HotRows rows, HotRead read) {
      add(rows.planner(), read, plan -> rows.planned(read, plan));
    }

    private void add(PlannerClient planner, HotRead read, Consumer<TaskPlan> scan) {
      hot.computeIfAbsent(planner, one -> new LinkedHashMap<>())
          .computeIfAbsent(read, one -> new ArrayList<>())
          .add(scan);
    }

    /** Asks; hot scans keep their answers. */
    private Map<Cold, ColdPlan> answered() {
      Map<Cold, ColdPlan> found = new HashMap<>();
      Map<PlannerClient, Boolean> planners = new LinkedHashMap<>();
      cold.keySet().forEach(one -> planners.put(one, true));
      hot.keySet().forEach(one -> planners.put(one, true));
      int parallelism =
          planners.isEmpty() ? 1 : SparkSession.active().sparkContext().defaultParallelism();
      for (PlannerClient planner : planners.keySet()) {
        List<ColdRead> files = List.copyOf(cold.getOrDefault(planner, Map.of()).keySet());
        List<HotRead> rows = List.copyOf(hot.getOrDefault(planner, Map.of()).keySet());
        ReadPlans plans = planner.ask(new PlanReads(files, rows, parallelism));
        for (int i = 0; i < files.size(); i++) {
          found.put(new Cold(planner, files.get(i)), plans.cold().get(i));
        }
        for (int i = 0; i < rows.size(); i++) {
          TaskPlan plan = plans.hot().get(i);
          hot.get(planner).get(rows.get(i)).forEach(one -> one.accept(plan));
        }
      }
      return found;
    }
  }
}
