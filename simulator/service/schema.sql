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
    order_version BIGINT NOT NULL DEFAULT 1 -- of the order that the request was checked against
);

-- What an operation is about that moves no money: `arguments` is JSON in one spelling.
CREATE TABLE actions (
    operation_id UUID PRIMARY KEY,
    intent_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    user_id UUID NOT NULL,
    arguments TEXT NOT NULL
);

-- refundable = captured - refunded - pending - disputed. `version` grows with every change that
-- a consent, or a check, cannot have known of.
CREATE TABLE orders (
    tenant_id UUID NOT NULL,
    id TEXT NOT NULL,
    user_id UUID NOT NULL,
    status TEXT NOT NULL,
    currency TEXT NOT NULL,
    captured BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    pending BIGINT NOT NULL,
    disputed BIGINT NOT NULL DEFAULT 0,
    version BIGINT NOT NULL DEFAULT 1,

    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE order_lines (
    tenant_id UUID NOT NULL,
    order_id TEXT NOT NULL,
    sku TEXT NOT NULL,
    quantity INTEGER NOT NULL,

    PRIMARY KEY (tenant_id, order_id, sku)
);

CREATE TABLE stock (
    tenant_id UUID NOT NULL,
    sku TEXT NOT NULL,
    on_hand INTEGER NOT NULL,

    PRIMARY KEY (tenant_id, sku)
);

CREATE TABLE profiles (
    tenant_id UUID NOT NULL,
    user_id UUID NOT NULL,
    name TEXT NOT NULL,
    email TEXT NOT NULL,

    PRIMARY KEY (tenant_id, user_id)
);

-- Work that a commit promised. A claim is a lease; `token` grows with every claim and fences
-- off the claims before it. `claims` counts claims in a row that left no result.
CREATE TABLE outbox (
    operation_id UUID NOT NULL,
    topic TEXT NOT NULL, -- refund, act, tell, expire
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

-- Questions to a person who may say yes. One question, one answer, one use.
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    operation_id UUID NOT NULL,
    digest TEXT NOT NULL, -- of tool, arguments, tenant and the order's version
    requested_by UUID NOT NULL,
    status TEXT NOT NULL, -- open, approved, rejected, expired, changed
    expires_at TIMESTAMPTZ NOT NULL,
    decided_by UUID,
    decided_at TIMESTAMPTZ,
    used_at TIMESTAMPTZ,

    CONSTRAINT one_question UNIQUE (operation_id)
);

-- Messages of the provider that were taken in.
CREATE TABLE webhook_events (
    id TEXT PRIMARY KEY,
    received_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE audit_log (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL,
    intent_id TEXT NOT NULL,
    operation_id UUID, -- NULL: refused before there was one
    event TEXT NOT NULL, -- 'pending->processing', or 'refused', 'conflict', 'denied', 'invalid', 'task', …
    detail TEXT NOT NULL
);
