-- The tables of the refund service, for PostgreSQL. database.py translates them for SQLite.
-- Times and ids are passed in by the service: NOW() is a default that it never uses.

-- As published in section 6 of the lesson.
CREATE TABLE tool_operations (
    id UUID PRIMARY KEY,
    tenant_id UUID NOT NULL,
    idempotency_key TEXT NOT NULL,
    action_type TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    status TEXT NOT NULL, -- pending, processing, succeeded, failed, outcome_unknown
    result JSONB,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),

    CONSTRAINT unique_tenant_idempotency
        UNIQUE (tenant_id, idempotency_key)
);

-- What a refund is about. Money in minor units of its currency.
CREATE TABLE refunds (
    operation_id UUID PRIMARY KEY,
    intent_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    model_key TEXT NOT NULL,
    user_id UUID NOT NULL,
    order_id TEXT NOT NULL,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    sends INTEGER NOT NULL DEFAULT 0
);

-- refundable = captured - refunded - pending
CREATE TABLE orders (
    tenant_id UUID NOT NULL,
    id TEXT NOT NULL,
    user_id UUID NOT NULL,
    status TEXT NOT NULL,
    currency TEXT NOT NULL,
    captured BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    pending BIGINT NOT NULL,

    PRIMARY KEY (tenant_id, id)
);

-- Work that a commit promised. A claim is a lease; `token` grows with every claim and fences
-- off the claims before it. `claims` counts claims in a row that left no result.
CREATE TABLE outbox (
    operation_id UUID NOT NULL,
    topic TEXT NOT NULL, -- refund, tell
    available_at TIMESTAMPTZ, -- NULL: nobody will look at it again
    owner TEXT,
    lease_until TIMESTAMPTZ,
    token BIGINT NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    done_at TIMESTAMPTZ,
    dead_at TIMESTAMPTZ,

    PRIMARY KEY (operation_id, topic)
);

-- Open questions for a human.
CREATE TABLE tasks (
    operation_id UUID NOT NULL,
    topic TEXT NOT NULL,
    reason TEXT NOT NULL,
    opened_at TIMESTAMPTZ NOT NULL,

    PRIMARY KEY (operation_id, topic)
);

CREATE TABLE audit_log (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL,
    intent_id TEXT NOT NULL,
    operation_id UUID, -- NULL: refused before there was one
    event TEXT NOT NULL, -- 'pending->processing', or 'refused', 'conflict', 'denied', 'told'
    detail TEXT NOT NULL
);
