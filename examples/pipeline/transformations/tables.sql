-- What the topic has, from its first message, and gets: offloaded, sealed and new ones alike.
CREATE STREAMING TABLE bronze AS
SELECT id, customer, amount, __publishTime AS published
FROM STREAM pulsar.`public/default`.orders;

-- Computed anew in each run.
CREATE MATERIALIZED VIEW totals AS
SELECT customer, count(*) AS orders, sum(amount) AS total
FROM bronze
GROUP BY customer;
