CREATE TABLE IF NOT EXISTS orders (
    id          TEXT PRIMARY KEY,
    customer_id TEXT    NOT NULL,
    item        TEXT    NOT NULL,
    total_minor INTEGER NOT NULL CHECK (total_minor > 0),
    currency    TEXT    NOT NULL CHECK (length(currency) = 3),
    ordered_on  TEXT    NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('paid', 'shipped', 'delivered'))
) STRICT;

-- An order is refunded once, in whole or in part: UNIQUE holds that, whoever
-- writes. created_at is the time of the database, not of a caller.
CREATE TABLE IF NOT EXISTS refunds (
    id           TEXT PRIMARY KEY,
    order_id     TEXT    NOT NULL UNIQUE REFERENCES orders (id),
    amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),
    currency     TEXT    NOT NULL,
    created_at   TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;
