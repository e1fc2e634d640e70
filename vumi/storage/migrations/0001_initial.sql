-- One file has the table, its change log and the queues, so that one transaction can use all three.

CREATE TABLE items (                  -- all items but views
    pk TEXT NOT NULL,
    sk TEXT NOT NULL,
    ttl INTEGER,
    batch TEXT,                        -- with due, the index `due`
    due INTEGER,
    attributes TEXT NOT NULL,          -- all but pk and sk, as JSON
    PRIMARY KEY (pk, sk)
) WITHOUT ROWID;

CREATE INDEX expiring ON items (ttl) WHERE ttl IS NOT NULL;

CREATE INDEX due ON items (batch, due, pk, sk) WHERE batch IS NOT NULL;

CREATE TABLE viewed (                  -- the badges that have views, by number
    number INTEGER PRIMARY KEY,
    pk TEXT NOT NULL UNIQUE,
    expires INTEGER NOT NULL           -- before it, no ttl of a view needs a look
);

CREATE INDEX expiring_views ON viewed (expires);

CREATE TABLE views (
    badge INTEGER NOT NULL,            -- the number of its badge
    sk TEXT NOT NULL,
    ttl INTEGER,
    attributes TEXT,                   -- as in items; NULL if a whole number `ttl` is the only one
    PRIMARY KEY (badge, sk)
) WITHOUT ROWID;

CREATE TABLE changes (                 -- the change log: items that TTL removed
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used again, not even after a deletion
    removed_at REAL NOT NULL,
    pk TEXT NOT NULL,
    sk TEXT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE checkpoints (             -- the last change that each consumer has handled
    consumer TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    body TEXT NOT NULL,
    sent_at REAL NOT NULL,
    visible_at REAL NOT NULL,
    timed_at REAL NOT NULL,            -- when visible_at was set
    receives INTEGER NOT NULL DEFAULT 0,
    first_received_at REAL
);

CREATE INDEX deliverable ON messages (queue, visible_at);

CREATE TABLE clock (                   -- one row: the latest time of a view or a fold
    highest REAL NOT NULL
);

CREATE TABLE file_sizes (              -- the size of this file at the end of each day (UTC)
    day TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE stream (label TEXT NOT NULL);   -- one row: the id of this file's change log

INSERT INTO clock (highest) VALUES (0);

INSERT INTO stream (label) VALUES (strftime('%Y-%m-%dT%H:%M:%f', 'now'));
