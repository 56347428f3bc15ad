export interface ApiSchemas {
        Account: {
            _bsvc?: never;
            _id: ApiSchemas["Id"];
            createdAt: string;
            deletedAt?: never;
            disabled: boolean;
            email?: string;
            emailVerified: boolean;
            hasPassword: boolean;
            isAnonymous?: true;
            isDeleted?: never;
            mfa?: {
                resetAt: string | null;
                since: string | null;
            };
            name?: string;
            password?: never;
            roles?: string[];
            updatedAt: string;
        } & {
            [key: string]: unknown;
        };
        AddedCollection: {
            access: "public" | "public-read" | "private" | "server-only" | "rules";
            changes?: {
                keepMs?: number;
                on?: boolean;
            };
            created: boolean;
            createdAt: string;
            fields: ApiSchemas["Field"][];
            id: ApiSchemas["Id"];
            indexes: string[];
            mode: "enforced" | "flexible";
            name: string;
            rls: {
                enabled: true;
                mode: "public-read" | "private";
                ownerField: string;
            } | {
                enabled: false;
            };
            rules?: {
                create: string;
                delete: string;
                read: string;
                update: string;
                updateTo?: string;
            };
            uniques?: (string[] | {
                fields: string[];
                where: {
                    [key: string]: string | number | boolean;
                };
            })[];
            updatedAt: string;
            version: number;
        };
        ApiRoutes: {
            "DELETE /api/admin/me/sessions": {
                data: {
                    ended: number;
                };
            };
            "DELETE /api/admin/me/views/{view}": {
                data?: never;
            };
            "DELETE /api/admin/operators/{operator}": {
                data?: never;
            };
            "DELETE /api/projects/{projectId}": {
                data: {
                    id: ApiSchemas["Id"];
                };
            };
            "DELETE /api/projects/{projectId}/bucket": {
                data: ApiSchemas["Bucket"];
            };
            "DELETE /api/projects/{projectId}/collections/{collection}": {
                data: {
                    id: ApiSchemas["Id"];
                    name: string;
                };
            };
            "DELETE /api/projects/{projectId}/collections/{collection}/documents/{document}": {
                data: {
                    id: ApiSchemas["Id"];
                };
                query?: {
                    permanent?: boolean;
                };
            };
            "DELETE /api/projects/{projectId}/files": {
                body: {
                    path: string;
                } & {
                    [key: string]: unknown;
                };
                data: Record<string, unknown>;
            };
            "DELETE /api/projects/{projectId}/invites/{invite}": {
                data?: never;
            };
            "DELETE /api/projects/{projectId}/keys/{keyId}": {
                data: ApiSchemas["Key"];
            };
            "DELETE /api/projects/{projectId}/mail/audiences/{audienceId}": {
                data: unknown;
            };
            "DELETE /api/projects/{projectId}/mail/audiences/{audienceId}/contacts/{contactId}": {
                data: unknown;
            };
            "DELETE /api/projects/{projectId}/mail/broadcasts/{id}": {
                data: unknown;
            };
            "DELETE /api/projects/{projectId}/mail/templates/{name}": {
                data: {
                    name: string;
                };
            };
            "DELETE /api/projects/{projectId}/social/{provider}": {
                data: ApiSchemas["SocialProvider"];
            };
            "DELETE /api/projects/{projectId}/users/{user}": {
                data?: never;
            };
            "DELETE /api/projects/{projectId}/users/{user}/mfa": {
                data: ApiSchemas["Account"];
            };
            "DELETE /api/projects/{projectId}/users/{user}/sessions": {
                data: {
                    ended: number;
                };
            };
            "DELETE /api/projects/{projectId}/users/{user}/sessions/{session}": {
                data: {
                    ended: number;
                };
            };
            "DELETE /api/projects/{projectId}/webhooks/{id}": {
                data: {
                    id: ApiSchemas["Id"];
                };
            };
            "GET /api/admin/audit": {
                data: {
                    items: ApiSchemas["AuditEntry"][];
                };
                query?: {
                    action?: string;
                    actor?: string;
                    before?: string;
                    limit?: number;
                    project?: string;
                    since?: string;
                };
            };
            "GET /api/admin/backups": {
                data: ApiSchemas["Backups"];
            };
            "GET /api/admin/backups/{name}/file": {
                data?: never;
            };
            "GET /api/admin/jobs": {
                data: {
                    items: ApiSchemas["Job"][];
                    total: number;
                };
                query?: {
                    limit?: number;
                    name?: string;
                    state?: "queued" | "running" | "dead" | "done";
                };
            };
            "GET /api/admin/me": {
                data: ApiSchemas["Me"];
            };
            "GET /api/admin/me/sessions": {
                data: {
                    items: ApiSchemas["OperatorSession"][];
                    total: number;
                };
            };
            "GET /api/admin/me/views": {
                data: {
                    items: ApiSchemas["SavedView"][];
                    total: number;
                };
            };
            "GET /api/admin/operators": {
                data: {
                    items: ApiSchemas["OperatorAccount"][];
                    total: number;
                };
            };
            "GET /api/admin/requests": {
                data: {
                    items: ApiSchemas["SeenRequest"][];
                    total: number;
                };
                query?: {
                    kept?: boolean;
                    limit?: number;
                    minMs?: "100" | "300" | "1000" | "3000";
                    project?: string;
                    q?: string;
                    status?: "2" | "3" | "4" | "5" | "400" | "401" | "403" | "404" | "409" | "413" | "429" | "500" | "503";
                };
            };
            "GET /api/admin/series": {
                data: {
                    from: string;
                    series: ApiSchemas["SeriesValues"];
                    stepMs: number;
                    version: string;
                };
                query?: {
                    range?: "1h" | "24h" | "30d";
                };
            };
            "GET /api/admin/settings": {
                data: {
                    items: ApiSchemas["Setting"][];
                    total: number;
                };
            };
            "GET /api/admin/status": {
                data: ApiSchemas["ServiceStatus"];
            };
            "GET /api/projects": {
                data: {
                    items: ApiSchemas["Project"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}": {
                data: ApiSchemas["ProjectDetails"];
            };
            "GET /api/projects/{projectId}/bucket": {
                data: ApiSchemas["Bucket"];
            };
            "GET /api/projects/{projectId}/collections": {
                data: {
                    items: ApiSchemas["ListedCollection"][];
                    total: number;
                };
                query?: {
                    sizes?: boolean;
                };
            };
            "GET /api/projects/{projectId}/collections/{collection}": {
                data: ApiSchemas["MeasuredCollection"];
            };
            "GET /api/projects/{projectId}/collections/{collection}/documents": {
                data: ApiSchemas["DocumentPage"] | ApiSchemas["DocumentCursorPage"] | ApiSchemas["DocumentCount"];
                query?: {
                    as?: string;
                    count?: boolean;
                    cursor?: string;
                    expand?: string;
                    fields?: string;
                    include_deleted?: boolean | "only";
                    limit?: number;
                    meta?: boolean;
                    or?: string;
                    page?: number;
                    populate?: string;
                    skip?: number;
                    sort?: string;
                } & {
                    [key: string]: unknown;
                };
            };
            "GET /api/projects/{projectId}/collections/{collection}/documents/{document}": {
                data: ApiSchemas["ShownDocument"];
                query?: {
                    expand?: string;
                    fields?: string;
                    include_deleted?: boolean;
                    meta?: boolean;
                    populate?: string;
                };
            };
            "GET /api/projects/{projectId}/collections/{collection}/documents/{document}/files": {
                data: {
                    items: ApiSchemas["FileOfDocument"][];
                };
            };
            "GET /api/projects/{projectId}/collections/{collection}/documents/{document}/history": {
                data: ApiSchemas["DocumentHistory"];
                query?: {
                    before?: number;
                    limit?: number;
                };
            };
            "GET /api/projects/{projectId}/collections/{collection}/documents/export": {
                data?: never;
                query?: {
                    include_deleted?: boolean | "only";
                    or?: string;
                } & {
                    [key: string]: unknown;
                };
            };
            "GET /api/projects/{projectId}/collections/{collection}/shape": {
                data: {
                    fields: {
                        name: string;
                        share: number;
                        types: string[];
                    }[];
                    looked: number;
                };
            };
            "GET /api/projects/{projectId}/deliveries": {
                data: {
                    items: ApiSchemas["Delivery"][];
                    next: string | null;
                };
                query?: {
                    before?: string;
                    limit?: number;
                    state?: "pending" | "delivered" | "failed";
                };
            };
            "GET /api/projects/{projectId}/files": {
                data: {
                    items: ApiSchemas["StoredFile"][];
                    next: string | null;
                };
                query?: {
                    before?: string;
                    limit?: number;
                    name?: string;
                };
            };
            "GET /api/projects/{projectId}/files/usage": {
                data: ApiSchemas["StorageUsage"];
            };
            "GET /api/projects/{projectId}/invites": {
                data: {
                    items: ApiSchemas["Invite"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}/keys": {
                data: {
                    items: ApiSchemas["Key"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}/mail/audiences": {
                data: unknown;
            };
            "GET /api/projects/{projectId}/mail/audiences/{audienceId}/contacts": {
                data: unknown;
            };
            "GET /api/projects/{projectId}/mail/broadcasts": {
                data: unknown;
            };
            "GET /api/projects/{projectId}/mail/broadcasts/{id}": {
                data: unknown;
            };
            "GET /api/projects/{projectId}/mail/logs": {
                data: {
                    items: ApiSchemas["MailLog"][];
                    limit: number;
                    page: number;
                    total: number;
                };
                query?: {
                    limit?: number;
                    page?: number;
                    status?: "queued" | "sent" | "delivered" | "bounced" | "complained" | "failed";
                    to?: string;
                };
            };
            "GET /api/projects/{projectId}/mail/logs/{id}": {
                data: {
                    dbLog: ApiSchemas["MailLog"];
                    last_event: string;
                    providerStatus: unknown;
                };
            };
            "GET /api/projects/{projectId}/mail/logs/{id}/live": {
                data: {
                    dbLog: ApiSchemas["MailLog"];
                    last_event: string;
                    providerStatus: unknown;
                };
            };
            "GET /api/projects/{projectId}/mail/templates": {
                data: {
                    items: ApiSchemas["TemplateSummary"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}/mail/templates/{name}": {
                data: ApiSchemas["UsedTemplate"];
            };
            "GET /api/projects/{projectId}/mail/templates/{name}/preview": {
                data?: never;
            };
            "GET /api/projects/{projectId}/rules": {
                data: {
                    items: ApiSchemas["ExposedPart"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}/rules/{collection}/explain": {
                data: ApiSchemas["ExplainedAccess"];
                query?: {
                    as?: string;
                    filter?: string;
                    id?: string;
                };
            };
            "GET /api/projects/{projectId}/schema": {
                data: ApiSchemas["ProjectSchema"];
            };
            "GET /api/projects/{projectId}/social": {
                data: {
                    items: ApiSchemas["SocialProvider"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}/usage": {
                data: ApiSchemas["Usage"];
            };
            "GET /api/projects/{projectId}/users": {
                data: {
                    items: ApiSchemas["Account"][];
                    limit: number;
                    page: number;
                    total: number;
                };
                query?: {
                    email?: string;
                    limit?: number;
                    page?: number;
                    q?: string;
                };
            };
            "GET /api/projects/{projectId}/users/{user}": {
                data: ApiSchemas["Account"];
            };
            "GET /api/projects/{projectId}/users/{user}/identities": {
                data: {
                    items: ApiSchemas["Identity"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}/users/{user}/sessions": {
                data: {
                    items: ApiSchemas["Session"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}/webhooks": {
                data: {
                    items: ApiSchemas["Webhook"][];
                    total: number;
                };
            };
            "GET /api/projects/{projectId}/webhooks/{id}": {
                data: ApiSchemas["Webhook"];
            };
            "GET /api/projects/{projectId}/webhooks/{id}/counts": {
                data: {
                    delivered: number;
                    failed: number;
                    pending: number;
                };
            };
            "GET /api/projects/{projectId}/webhooks/{id}/deliveries": {
                data: {
                    items: ApiSchemas["Delivery"][];
                    next: string | null;
                };
                query?: {
                    before?: string;
                    limit?: number;
                    state?: "pending" | "delivered" | "failed";
                };
            };
            "GET /api/projects/{projectId}/webhooks/{id}/deliveries/{deliveryId}": {
                data: ApiSchemas["DeliveryWithBody"];
            };
            "PATCH /api/admin/operators/{operator}": {
                body: ApiSchemas["OperatorChanges"];
                data: ApiSchemas["OperatorAccount"];
            };
            "PATCH /api/projects/{projectId}": {
                body: ApiSchemas["ProjectChanges"];
                data: ApiSchemas["ProjectDetails"];
                query?: {
                    verify?: boolean;
                };
            };
            "PATCH /api/projects/{projectId}/collections/{collection}": {
                body: {
                    access?: "public" | "public-read" | "private" | "server-only";
                    addFields?: ApiSchemas["Field"][];
                    dropFields?: string[];
                    fields?: ApiSchemas["Field"][];
                    forNewWrites?: boolean;
                    indexes?: string[];
                    mode?: "enforced" | "flexible";
                    ownerField?: string;
                    rls?: {
                        enabled?: boolean;
                        mode?: "public-read" | "private";
                        ownerField?: string;
                    } | null;
                    setFields?: ApiSchemas["Field"][];
                    uniques?: (string[] | {
                        fields: string[];
                        where: {
                            [key: string]: string | number | boolean;
                        };
                    })[];
                };
                data: ApiSchemas["Collection"] | ApiSchemas["FitReport"];
                query?: {
                    check?: boolean;
                };
            };
            "PATCH /api/projects/{projectId}/collections/{collection}/documents/{document}": {
                body: ApiSchemas["DocumentChanges"];
                data: ApiSchemas["Document"];
            };
            "PATCH /api/projects/{projectId}/collections/{collection}/documents/{document}/recover": {
                data: ApiSchemas["Document"];
            };
            "PATCH /api/projects/{projectId}/mail/audiences/{audienceId}/contacts/{contactId}": {
                body: ApiSchemas["ContactChanges"];
                data: unknown;
            };
            "PATCH /api/projects/{projectId}/users/{user}": {
                body: ApiSchemas["UserChanges"];
                data: ApiSchemas["Account"];
            };
            "PATCH /api/projects/{projectId}/webhooks/{id}": {
                body: ApiSchemas["WebhookChanges"];
                data: ApiSchemas["Webhook"];
            };
            "POST /api/admin/backups": {
                data: {
                    job: string;
                };
            };
            "POST /api/admin/backups/{name}/check": {
                data: {
                    job: string;
                };
            };
            "POST /api/admin/jobs/{jobId}/retry": {
                data: ApiSchemas["Job"];
            };
            "POST /api/admin/login": {
                body: {
                    cookie?: boolean;
                    email: string;
                    password: string;
                };
                data: {
                    expiresAt: string;
                    operator: ApiSchemas["Operator"];
                    token?: string;
                };
            };
            "POST /api/admin/login/link": {
                body: {
                    link: string;
                };
                data: {
                    expiresAt: string;
                    operator: ApiSchemas["Operator"];
                    token?: string;
                };
            };
            "POST /api/admin/logout": {
                data?: never;
            };
            "POST /api/admin/me/confirm": {
                body: {
                    password: string;
                };
                data?: never;
            };
            "POST /api/admin/me/password": {
                body: {
                    currentPassword: string;
                    newPassword: string;
                };
                data?: never;
            };
            "POST /api/admin/me/views": {
                body: ApiSchemas["NewView"];
                data: ApiSchemas["SavedView"];
            };
            "POST /api/admin/operators": {
                body: ApiSchemas["NewOperator"];
                data: ApiSchemas["OperatorAccount"];
            };
            "POST /api/admin/operators/{operator}/password": {
                body: {
                    password: string;
                };
                data?: never;
            };
            "POST /api/projects": {
                body: ApiSchemas["NewProject"];
                data: {
                    created: false;
                    keys: null;
                    project: ApiSchemas["ProjectDetails"];
                } | {
                    created: true;
                    keys: {
                        publishable: string;
                        secret: string;
                    };
                    project: ApiSchemas["ProjectDetails"];
                };
            };
            "POST /api/projects/{projectId}/bucket/check": {
                body?: {
                    origin?: string;
                };
                data: {
                    checks: ApiSchemas["BucketCheck"][];
                    ok: boolean;
                };
            };
            "POST /api/projects/{projectId}/collections": {
                body: {
                    access?: "public" | "public-read" | "private" | "server-only";
                    fields?: ApiSchemas["Field"][];
                    ifNotExists?: boolean;
                    indexes?: string[];
                    mode?: "enforced" | "flexible";
                    name: string;
                    ownerField?: string;
                    rls?: {
                        enabled?: boolean;
                        mode?: "public-read" | "private";
                        ownerField?: string;
                    } | null;
                    rules?: {
                        create?: string;
                        delete?: string;
                        read?: string;
                        update?: string;
                        updateTo?: string;
                    } | null;
                    uniques?: (string[] | {
                        fields: string[];
                        where: {
                            [key: string]: string | number | boolean;
                        };
                    })[];
                };
                data: ApiSchemas["AddedCollection"];
            };
            "POST /api/projects/{projectId}/collections/{collection}/documents": {
                body: ApiSchemas["NewDocument"];
                data: ApiSchemas["Document"];
            };
            "POST /api/projects/{projectId}/collections/{collection}/documents/aggregate": {
                body: {
                    pipeline: {
                        [key: string]: unknown;
                    }[];
                } & {
                    [key: string]: unknown;
                };
                data: {
                    [key: string]: unknown;
                }[];
                query?: {
                    include_deleted?: boolean;
                };
            };
            "POST /api/projects/{projectId}/collections/{collection}/documents/explain": {
                body: {
                    pipeline?: unknown;
                    query?: string;
                };
                data: ApiSchemas["ExplainedRead"];
            };
            "POST /api/projects/{projectId}/collections/{collection}/documents/import": {
                body: {
                    documents: unknown[];
                };
                data: ApiSchemas["ImportOutcome"];
                query?: {
                    dryRun?: boolean;
                };
            };
            "POST /api/projects/{projectId}/collections/{collection}/documents/recover": {
                body: {
                    ids: ApiSchemas["Id"][];
                };
                data: ApiSchemas["DocumentsOneByOne"];
            };
            "POST /api/projects/{projectId}/collections/{collection}/documents/trash": {
                body: {
                    ids: ApiSchemas["Id"][];
                };
                data: ApiSchemas["DocumentsOneByOne"];
            };
            "POST /api/projects/{projectId}/collections/{collection}/rename": {
                body: {
                    name: string;
                };
                data: ApiSchemas["Collection"];
            };
            "POST /api/projects/{projectId}/files": {
                data: ApiSchemas["UploadedFile"];
                form: {
                    attach?: string;
                    file: string;
                    visibility?: "public" | "private" | "attached";
                };
            };
            "POST /api/projects/{projectId}/invites": {
                body: {
                    email: string;
                    inviterName?: string;
                    redirect: string;
                    roles?: string[];
                    set?: {
                        collection: string;
                        document: {
                            [key: string]: unknown;
                        };
                    };
                } & {
                    [key: string]: unknown;
                };
                data: ApiSchemas["Invite"];
            };
            "POST /api/projects/{projectId}/keys": {
                body: {
                    name?: string;
                    type: "publishable" | "secret";
                };
                data: ApiSchemas["CreatedKey"];
            };
            "POST /api/projects/{projectId}/keys/rotate": {
                body: {
                    grace?: string;
                    type: "publishable" | "secret";
                };
                data: ApiSchemas["CreatedKey"];
            };
            "POST /api/projects/{projectId}/mail/audiences": {
                body: {
                    name: string;
                } & {
                    [key: string]: unknown;
                };
                data: unknown;
            };
            "POST /api/projects/{projectId}/mail/audiences/{audienceId}/contacts": {
                body: ApiSchemas["NewContact"];
                data: unknown;
            };
            "POST /api/projects/{projectId}/mail/broadcasts": {
                body: ApiSchemas["NewBroadcast"];
                data: unknown;
            };
            "POST /api/projects/{projectId}/mail/broadcasts/{id}/send": {
                body?: {
                    scheduledAt?: string | null;
                } & {
                    [key: string]: unknown;
                };
                data: unknown;
            };
            "POST /api/projects/{projectId}/mail/logs/{id}/text": {
                data: ApiSchemas["MailText"];
            };
            "POST /api/projects/{projectId}/mail/test": {
                body: {
                    to: string;
                };
                data: ApiSchemas["QueuedMail"];
            };
            "POST /api/projects/{projectId}/recount": {
                data: {
                    storage: {
                        after: number;
                        before: number;
                    };
                };
            };
            "POST /api/projects/{projectId}/rotate-tokens": {
                body?: {
                    grace?: string;
                };
                data: {
                    kid: string;
                };
            };
            "POST /api/projects/{projectId}/rules/{collection}/check": {
                body: {
                    data?: boolean;
                    rules?: {
                        create?: string;
                        delete?: string;
                        read?: string;
                        update?: string;
                        updateTo?: string;
                    } | null;
                };
                data: ApiSchemas["ReviewedRules"];
            };
            "POST /api/projects/{projectId}/users": {
                body: ApiSchemas["NewAccount"];
                data: ApiSchemas["Account"];
            };
            "POST /api/projects/{projectId}/users/{user}/disable": {
                data: ApiSchemas["Account"];
            };
            "POST /api/projects/{projectId}/users/{user}/enable": {
                data: ApiSchemas["Account"];
            };
            "POST /api/projects/{projectId}/users/{user}/set-password": {
                body: {
                    password: string;
                };
                data?: never;
            };
            "POST /api/projects/{projectId}/webhooks": {
                body: ApiSchemas["NewWebhook"];
                data: ApiSchemas["CreatedWebhook"];
            };
            "POST /api/projects/{projectId}/webhooks/{id}/deliveries/{deliveryId}/replay": {
                data: ApiSchemas["Delivery"];
            };
            "POST /api/projects/{projectId}/webhooks/{id}/rotate-secret": {
                data: ApiSchemas["RotatedWebhook"];
            };
            "POST /api/projects/{projectId}/webhooks/{id}/test": {
                data: ApiSchemas["Delivery"];
            };
            "PUT /api/projects/{projectId}/bucket": {
                body: {
                    accessKeyId: string;
                    bucket: string;
                    endpoint?: string | null;
                    forcePathStyle?: boolean;
                    publicUrl?: string | null;
                    region?: string;
                    secretAccessKey: string;
                    verify?: boolean;
                };
                data: ApiSchemas["Bucket"];
            };
            "PUT /api/projects/{projectId}/bucket/cors": {
                body: {
                    origins: string[];
                };
                data: {
                    origins: string[];
                };
            };
            "PUT /api/projects/{projectId}/collections/{collection}/changes": {
                body: {
                    keepMs?: number;
                    on?: boolean;
                };
                data: ApiSchemas["Collection"];
            };
            "PUT /api/projects/{projectId}/collections/{collection}/rls": {
                body: {
                    enabled?: boolean;
                    mode?: "public-read" | "private";
                    ownerField?: string;
                };
                data: ApiSchemas["Collection"];
            };
            "PUT /api/projects/{projectId}/collections/{collection}/rules": {
                body: {
                    rules: {
                        create?: string;
                        delete?: string;
                        read?: string;
                        update?: string;
                        updateTo?: string;
                    } | null;
                };
                data: ApiSchemas["Collection"];
                query?: {
                    confirm?: string;
                };
            };
            "PUT /api/projects/{projectId}/mail/templates/{name}": {
                body: {
                    html?: string;
                    subject: string;
                    text?: string;
                };
                data: ApiSchemas["Template"];
            };
            "PUT /api/projects/{projectId}/schema": {
                body: ApiSchemas["ProjectSchema"];
                data: {
                    applied: boolean;
                    changes: ApiSchemas["SchemaChange"][];
                };
                query?: {
                    confirm?: string;
                    dryRun?: boolean;
                    forNewWrites?: boolean;
                    prune?: boolean;
                };
            };
            "PUT /api/projects/{projectId}/social/{provider}": {
                body: {
                    appClientIds?: string[];
                    apple?: {
                        keyId: string;
                        teamId: string;
                    };
                    clientId: string;
                    clientSecret: string;
                    issuer?: string;
                    redirectUrls: string[];
                    scopes?: string[];
                    tokenInAddress?: boolean;
                };
                data: ApiSchemas["SocialProvider"];
            };
            "PUT /api/projects/{projectId}/users/{user}/roles": {
                body: {
                    roles: string[];
                };
                data: ApiSchemas["Account"];
            };
        };
        AuditEntry: {
            action: string;
            actor: string;
            at: string;
            code: string | null;
            id: ApiSchemas["Id"];
            input: {
                [key: string]: unknown;
            };
            outcome: "started" | "done" | "failed";
            requestId?: string;
        };
        Backups: {
            isLate: boolean;
            items: {
                at: string;
                bytes: number;
                checkedAt: string | null;
                damagedFiles: number;
                fault: string | null;
                name: string;
                verified: {
                    documents: number;
                    files: number;
                } | null;
            }[];
            keep: {
                days: number;
                months: number;
                weeks: number;
            };
            place: string | null;
            problem: string | null;
            schedule: string;
        };
        Bucket: {
            accessKeyId: string;
            bucket: string;
            endpoint: string | null;
            forcePathStyle: boolean;
            publicUrl: string | null;
            region: string;
            secretAccessKey: "********";
            setAt: string;
        } | {
            bucket: null;
        };
        BucketCheck: {
            detail: string;
            hint: string | null;
            name: string;
            ok: boolean;
        };
        Collection: {
            access: "public" | "public-read" | "private" | "server-only" | "rules";
            changes?: {
                keepMs?: number;
                on?: boolean;
            };
            createdAt: string;
            fields: ApiSchemas["Field"][];
            id: ApiSchemas["Id"];
            indexes: string[];
            mode: "enforced" | "flexible";
            name: string;
            rls: {
                enabled: true;
                mode: "public-read" | "private";
                ownerField: string;
            } | {
                enabled: false;
            };
            rules?: {
                create: string;
                delete: string;
                read: string;
                update: string;
                updateTo?: string;
            };
            uniques?: (string[] | {
                fields: string[];
                where: {
                    [key: string]: string | number | boolean;
                };
            })[];
            updatedAt: string;
            version: number;
        };
        ContactChanges: {
            email?: string;
            firstName?: string | null;
            lastName?: string | null;
            unsubscribed?: boolean;
        } & {
            [key: string]: unknown;
        };
        CreatedKey: {
            key: ApiSchemas["Key"];
            value: string;
        };
        CreatedWebhook: {
            createdAt: string;
            description: string;
            disabledReason: ("requested" | "gone" | "failing") | null;
            enabled: boolean;
            events: string[];
            failingSince: string | null;
            headers: string[];
            id: ApiSchemas["Id"];
            keepsWaiting: boolean;
            secret: string;
            updatedAt: string;
            url: string;
        };
        Delivery: {
            attempts: {
                at: string;
                durationMs: number;
                error: string | null;
                response: string;
                status: number | null;
            }[];
            collection: string | null;
            createdAt: string;
            documentId: string | null;
            event: string;
            eventId: string;
            id: string;
            nextAttemptAt: string | null;
            state: "pending" | "delivered" | "failed";
            updatedAt: string;
            webhookId: ApiSchemas["Id"];
        };
        DeliveryWithBody: {
            attempts: {
                at: string;
                durationMs: number;
                error: string | null;
                response: string;
                status: number | null;
            }[];
            body: string | null;
            collection: string | null;
            createdAt: string;
            documentId: string | null;
            event: string;
            eventId: string;
            id: string;
            nextAttemptAt: string | null;
            state: "pending" | "delivered" | "failed";
            updatedAt: string;
            webhookId: ApiSchemas["Id"];
        };
        Document: {
            _id: ApiSchemas["Id"];
            createdAt: string;
            deletedAt: string | null;
            isDeleted: boolean;
            updatedAt: string;
        } & {
            [key: string]: unknown;
        };
        DocumentChanges: {
            [key: string]: unknown;
        };
        DocumentCount: {
            count: number;
        };
        DocumentCursorPage: {
            cursor: string;
            items: ApiSchemas["ShownDocument"][];
            limit: number;
            nextCursor: string | null;
            total: number;
        };
        DocumentHistory: {
            isKept: boolean;
            items: {
                at: string;
                before: ApiSchemas["ShownDocument"] | null;
                change: "created" | "changed" | "removed";
                isPartial: boolean;
            }[];
            next: number | null;
            since: string | null;
        };
        DocumentPage: {
            items: ApiSchemas["ShownDocument"][];
            limit: number;
            nextCursor: null;
            page: number;
            total: number;
        };
        DocumentsOneByOne: {
            done: ApiSchemas["Id"][];
            refused: {
                code: string;
                id: ApiSchemas["Id"];
                message: string;
            }[];
        };
        Error: {
            code: string;
            data: {
                expiresIn?: string;
                methods?: string[];
                mfaToken?: string;
            };
            details?: {
                code?: string;
                field: string;
                handover?: string;
                index?: number;
                message: string;
                methods?: string[];
                n?: number;
                rule: string;
                side?: "before" | "after";
            }[];
            docs: string;
            error: string;
            message: string;
            requestId: string;
            success: false;
        };
        ExplainedAccess: {
            as: ApiSchemas["Id"] | null;
            collection: string;
            document?: {
                id: ApiSchemas["Id"];
                leftOut: string[];
            };
            list?: {
                examined: number;
                indexes: string[];
                returned: number;
            } | {
                refused: string;
            };
            rules: ApiSchemas["ExplainedRule"][];
        };
        ExplainedAlternative: {
            admits: "yes" | "no" | "depends";
            conditions: {
                admits: "yes" | "no" | "depends";
                text: string;
            }[];
        };
        ExplainedRead: {
            examined: number;
            indexes: string[];
            plan: unknown;
            returned: number;
        };
        ExplainedRule: {
            admits: "yes" | "no" | "depends";
            alternatives: ApiSchemas["ExplainedAlternative"][];
            filter?: Record<string, unknown> | null;
            rule: "read" | "create" | "update" | "delete" | "updateTo";
            sets: {
                ageMs: number;
                text: string;
                values: number;
            }[];
            text: string;
        };
        ExposedPart: {
            closes: string;
            kind: "collection" | "sign-up" | "files";
            name: string;
            what: string;
        };
        Field: {
            check?: true;
            default?: string | number | boolean;
            enum?: (string | number)[];
            fields?: ApiSchemas["Field"][];
            fixed?: boolean;
            format?: "email" | "url" | "uuid";
            hidden?: boolean;
            integer?: true;
            items?: ApiSchemas["Shape"];
            lowercase?: true;
            max?: number | string;
            maxItems?: number;
            maxLength?: number;
            min?: number | string;
            minItems?: number;
            minLength?: number;
            name: string;
            nocase?: boolean;
            onDelete?: "restrict" | "unset" | "trash" | "remove";
            pattern?: string;
            protected?: boolean;
            public?: boolean;
            read?: string;
            ref?: string;
            required?: boolean;
            same?: string[];
            stamp?: "user.id";
            trim?: true;
            type: "String" | "Number" | "Boolean" | "Date" | "Object" | "Array" | "Ref";
            unique?: boolean;
            uniqueItems?: true;
            write?: string;
        };
        FileOfDocument: {
            attachedTo: ApiSchemas["Id"] | null;
            contentType: string;
            createdAt: string;
            link: string | null;
            name: string;
            path: string;
            provider: "internal" | "external";
            size: number | null;
            uploadedBy: string | null;
            url: string | null;
            visibility: "public" | "attached" | "private";
        };
        FitReport: {
            checked: number;
            examples: {
                id: ApiSchemas["Id"];
                message: string;
            }[];
            misfits: number;
        };
        Id: string;
        Identity: {
            linkedAt: string;
            provider: string;
        };
        ImportOutcome: {
            inserted: number;
            notes?: {
                count: number;
                field: string;
                index: number;
                message: string;
            }[];
            present?: number;
            rejected: {
                index: number;
                message: string;
            }[];
        };
        Invite: {
            createdAt: string;
            email: string;
            expiresAt: string;
            id: string;
            roles: string[];
        };
        Job: {
            attempts: number;
            createdAt: string;
            error: string | null;
            id: ApiSchemas["Id"];
            name: string;
            runAt: string;
            state: "queued" | "running" | "dead" | "done";
            updatedAt: string;
        };
        Key: {
            createdAt: string;
            expiresAt: string | null;
            id: ApiSchemas["Id"];
            last4: string;
            lastUsedAt: string | null;
            live: boolean;
            name: string | null;
            revokedAt: string | null;
            type: "publishable" | "secret";
        };
        ListedCollection: {
            access: "public" | "public-read" | "private" | "server-only" | "rules";
            changes?: {
                keepMs?: number;
                on?: boolean;
            };
            createdAt: string;
            fields: ApiSchemas["Field"][];
            id: ApiSchemas["Id"];
            indexes: string[];
            mode: "enforced" | "flexible";
            name: string;
            rls: {
                enabled: true;
                mode: "public-read" | "private";
                ownerField: string;
            } | {
                enabled: false;
            };
            rules?: {
                create: string;
                delete: string;
                read: string;
                update: string;
                updateTo?: string;
            };
            size?: {
                bytes: number;
                documents: number;
            };
            uniques?: (string[] | {
                fields: string[];
                where: {
                    [key: string]: string | number | boolean;
                };
            })[];
            updatedAt: string;
            version: number;
        };
        MailLog: {
            id: ApiSchemas["Id"];
            providerEmailId: string | null;
            reason: string | null;
            sentAt: string;
            status: "queued" | "sent" | "delivered" | "bounced" | "complained" | "failed";
            subject: string;
            templateUsed: ApiSchemas["TemplateUsed"] | null;
            to: string | string[];
            usingByok: boolean;
        };
        MailText: {
            from: string;
            html: string | null;
            subject: string;
            text: string | null;
            to: string[];
        };
        Me: {
            createdAt: string | null;
            email: string;
            expiresAt: string | null;
            id: ApiSchemas["Id"] | null;
            projects: ApiSchemas["Id"][] | null;
            role: "owner" | "viewer";
        };
        MeasuredCollection: {
            access: "public" | "public-read" | "private" | "server-only" | "rules";
            changes?: {
                keepMs?: number;
                on?: boolean;
            };
            createdAt: string;
            fields: ApiSchemas["Field"][];
            id: ApiSchemas["Id"];
            indexes: string[];
            log: {
                bytes: number;
                maxBytes: number;
                since: string | null;
            } | null;
            mode: "enforced" | "flexible";
            name: string;
            rls: {
                enabled: true;
                mode: "public-read" | "private";
                ownerField: string;
            } | {
                enabled: false;
            };
            rules?: {
                create: string;
                delete: string;
                read: string;
                update: string;
                updateTo?: string;
            };
            uniques?: (string[] | {
                fields: string[];
                where: {
                    [key: string]: string | number | boolean;
                };
            })[];
            updatedAt: string;
            version: number;
        };
        NewAccount: {
            email: string;
            emailVerified?: boolean;
            password?: string;
            roles?: string[];
        } & {
            [key: string]: unknown;
        };
        NewBroadcast: {
            audienceId?: string | null;
            from?: string;
            html?: string | null;
            scheduledAt?: string | null;
            segmentId?: string | null;
            subject: string;
            text?: string | null;
        } & {
            [key: string]: unknown;
        };
        NewContact: {
            email: string;
            firstName?: string | null;
            lastName?: string | null;
            unsubscribed?: boolean;
        } & {
            [key: string]: unknown;
        };
        NewDocument: {
            [key: string]: unknown;
        };
        NewOperator: {
            email: string;
            password: string;
            projects?: string[] | null;
            role: "owner" | "viewer";
        };
        NewProject: {
            ifNotExists?: boolean;
            name: string;
            plan?: "free" | "pro";
        };
        NewView: {
            collection: string;
            name: string;
            projectId: ApiSchemas["Id"];
            query: string;
        };
        NewWebhook: {
            description?: string;
            enabled?: boolean;
            events: string[];
            headers?: {
                [key: string]: string;
            };
            strict?: boolean;
            url: string;
        };
        Operator: {
            createdAt: string;
            email: string;
            id: ApiSchemas["Id"];
            projects: ApiSchemas["Id"][] | null;
            role: "owner" | "viewer";
        };
        OperatorAccount: {
            createdAt: string;
            email: string;
            id: ApiSchemas["Id"];
            projects: ApiSchemas["Id"][] | null;
            role: "owner" | "viewer";
        };
        OperatorChanges: {
            projects?: string[] | null;
            role?: "owner" | "viewer";
        };
        OperatorSession: {
            console: boolean;
            createdAt: string;
            current: boolean;
            expiresAt: string;
            usedAt: string | null;
        };
        Project: {
            allowedDomains: string[];
            createdAt: string;
            id: ApiSchemas["Id"];
            limits: {
                authRequests?: number;
                database?: number;
                mail?: number;
                requests?: number;
                storage?: number;
                streams?: number;
                userRequests?: number;
                userShare?: number;
                webhooks?: number;
            };
            name: string;
            plan: "free" | "pro";
            signIn: ApiSchemas["SignInSettings"];
            updatedAt: string;
        };
        ProjectChanges: {
            allowedDomains?: string[];
            limits?: {
                authRequests?: number | null;
                database?: number | null;
                mail?: number | null;
                requests?: number | null;
                storage?: number | null;
                streams?: number | null;
                userRequests?: number | null;
                userShare?: number | null;
                webhooks?: number | null;
            };
            name?: string;
            plan?: "free" | "pro";
            providerApiKey?: string | null;
            providerFromEmail?: string | null;
            providerWebhookSecret?: string | null;
            signIn?: {
                anonymous?: boolean;
                anonymousKeep?: string;
                codeLogin?: "off" | "existing" | "signup";
                mfa?: "off" | "optional" | "required";
                mfaResetDelay?: string;
                passkeys?: {
                    origins: string[];
                    rpId: string;
                } | null;
                redirects?: string[];
                tokens?: "HS256" | "ES256";
            };
            storage?: {
                publishableUploads?: boolean;
            };
        };
        ProjectDetails: {
            allowedDomains: string[];
            createdAt: string;
            id: ApiSchemas["Id"];
            limits: {
                authRequests?: number;
                database?: number;
                mail?: number;
                requests?: number;
                storage?: number;
                streams?: number;
                userRequests?: number;
                userShare?: number;
                webhooks?: number;
            };
            name: string;
            plan: "free" | "pro";
            providerApiKey: string | null;
            providerFromEmail: string | null;
            providerWebhookSecret: string | null;
            signIn: ApiSchemas["SignInSettings"];
            storage: {
                bucket: string | null;
                publishableUploads: boolean;
            };
            updatedAt: string;
        };
        ProjectSchema: {
            collections: {
                access?: "public" | "public-read" | "private" | "server-only";
                changes?: {
                    keep?: string;
                    on?: boolean;
                };
                fields?: ApiSchemas["Field"][];
                indexes?: string[];
                mode?: "enforced" | "flexible";
                name: string;
                ownerField?: string;
                rls?: {
                    mode: "public-read" | "private";
                    ownerField: string;
                } | null | string;
                rules?: {
                    create?: string;
                    delete?: string;
                    read?: string;
                    update?: string;
                    updateTo?: string;
                } | null | string;
                uniques?: (string[] | {
                    fields: string[];
                    where: {
                        [key: string]: string | number | boolean;
                    };
                })[];
            }[];
            format: "bsvc-schema/1";
        };
        QueuedMail: {
            id: ApiSchemas["Id"];
            monthlyLimit: number | null;
            monthlyUsage: number;
            provider: "byok" | "default";
            templateUsed?: ApiSchemas["TemplateUsed"];
        };
        ReviewedRules: {
            findings: ApiSchemas["RuleFinding"][];
            loosens: string[];
        };
        RotatedWebhook: {
            createdAt: string;
            description: string;
            disabledReason: ("requested" | "gone" | "failing") | null;
            enabled: boolean;
            events: string[];
            failingSince: string | null;
            headers: string[];
            id: ApiSchemas["Id"];
            keepsWaiting: boolean;
            previousSecretExpiresAt: string;
            secret: string;
            updatedAt: string;
            url: string;
        };
        RuleFinding: {
            code: string;
            collection: string;
            details?: {
                field: string;
                message: string;
                rule: string;
            }[];
            message: string;
        };
        SavedView: {
            collection: string;
            id: ApiSchemas["Id"];
            name: string;
            projectId: ApiSchemas["Id"];
            query: string;
        };
        SchemaChange: {
            action: "add" | "change" | "drop";
            kind: "collection";
            loosens?: string[];
            name: string;
            what?: string[];
        };
        SeenRequest: {
            at: string;
            by: "publishable key" | "secret key" | "operator" | "nobody";
            method: string;
            ms: number;
            network: string;
            path: string;
            project: string | null;
            requestId: string;
            route: string | null;
            status: number;
            user: string | null;
        };
        SeriesValues: {
            eventLoopLagMs: (number | null)[];
            inFlight: (number | null)[];
            mailsFailed: (number | null)[];
            mailsSent: (number | null)[];
            p50Ms: (number | null)[];
            p95Ms: (number | null)[];
            p99Ms: (number | null)[];
            requests2xx: (number | null)[];
            requests3xx: (number | null)[];
            requests4xx: (number | null)[];
            requests5xx: (number | null)[];
            storedBytes: (number | null)[];
            webhooksDelivered: (number | null)[];
            webhooksFailed: (number | null)[];
        };
        ServiceStatus: {
            backup: {
                at: string | null;
                isLate: boolean;
            } | null;
            disk: {
                freeBytes: number;
                totalBytes: number;
            } | null;
            jobs: {
                dead: number;
                queued: number;
                running: number;
            };
            memoryBytes: number;
            problems: {
                id: string | null;
                kind: "webhook" | "jobs" | "disk" | "backup";
                project: ApiSchemas["Id"] | null;
                since: string | null;
                text: string;
            }[];
            processes: number;
            store: "embedded" | "mongodb";
            storedBytes: number | null;
            uptimeSeconds: number;
            version: string;
        };
        Session: {
            createdAt: string;
            expiresAt: string;
            id: string;
            ip: string | null;
            usedAt: string;
            userAgent: string | null;
        };
        Setting: {
            env: string;
            name: string;
            source: string;
            text: string;
            value: (string | number | boolean) | null;
        };
        Shape: {
            check?: true;
            enum?: (string | number)[];
            fields?: ApiSchemas["Field"][];
            format?: "email" | "url" | "uuid";
            integer?: true;
            items?: ApiSchemas["Shape"];
            lowercase?: true;
            max?: number | string;
            maxItems?: number;
            maxLength?: number;
            min?: number | string;
            minItems?: number;
            minLength?: number;
            onDelete?: "restrict" | "unset" | "trash" | "remove";
            pattern?: string;
            ref?: string;
            same?: string[];
            trim?: true;
            type: "String" | "Number" | "Boolean" | "Date" | "Object" | "Array" | "Ref";
            uniqueItems?: true;
        };
        ShownDocument: {
            _id: ApiSchemas["Id"];
            createdAt?: string;
            deletedAt?: string | null;
            isDeleted?: boolean;
            updatedAt?: string;
        } & {
            [key: string]: unknown;
        };
        SignInSettings: {
            anonymous: boolean;
            anonymousKeep: string;
            codeLogin: "off" | "existing" | "signup";
            mfa: "off" | "optional" | "required";
            mfaResetDelay: string;
            passkeys: {
                origins: string[];
                rpId: string;
            } | null;
            redirects: string[];
            tokens: "HS256" | "ES256";
        };
        SocialProvider: {
            appClientIds: string[];
            apple?: {
                keyId: string;
                teamId: string;
            };
            clientId: string;
            createdAt: string;
            issuer: string;
            name: string;
            redirectUrls: string[];
            scopes: string[];
            tokenInAddress: boolean;
            updatedAt: string;
        };
        StorageUsage: {
            bytes: number;
            files: number;
            limit: number | null;
            provider: "internal" | "external";
        };
        StoredFile: {
            attachedTo: ApiSchemas["Id"] | null;
            contentType: string;
            createdAt: string;
            name: string;
            path: string;
            provider: "internal" | "external";
            size: number | null;
            uploadedBy: string | null;
            url: string | null;
            visibility: "public" | "attached" | "private";
        };
        Template: {
            html?: string;
            id: ApiSchemas["Id"] | null;
            name: string;
            scope: "project" | "system" | "embedded";
            subject: string;
            text?: string;
        };
        TemplateSummary: {
            id: ApiSchemas["Id"] | null;
            name: string;
            scope: "project" | "system" | "embedded";
            subject: string;
        };
        TemplateUsed: {
            id: ApiSchemas["Id"] | null;
            key: string;
            name: string;
            scope: "project" | "system" | "embedded";
        };
        UploadedFile: {
            message: string;
            path: string;
            provider: "internal" | "external";
            url: string | null;
            visibility?: "attached" | "private";
            warning?: string;
        };
        Usage: {
            collections: {
                bytes: number;
                documents: number;
                log: {
                    bytes: number;
                    maxBytes: number;
                    since: string | null;
                } | null;
                name: string;
                trashed: number;
            }[];
            database: {
                kept: number;
                limit: number | null;
                used: number;
            };
            documents: number;
            limits: {
                database: number | null;
                mail: number | null;
                storage: number | null;
                streams: number | null;
                userShare: number | null;
                webhooks: number | null;
            };
            mail: {
                limit: number | null;
                used: number;
            };
            plan: "free" | "pro";
            storage: ApiSchemas["StorageUsage"];
            webhooks: number;
        };
        UsedTemplate: {
            html?: string;
            id: ApiSchemas["Id"] | null;
            key: string;
            name: string;
            scope: "project" | "system" | "embedded";
            subject: string;
            text?: string;
        };
        UserChanges: {
            email?: string;
            password?: never;
        } & {
            [key: string]: unknown;
        };
        Webhook: {
            createdAt: string;
            description: string;
            disabledReason: ("requested" | "gone" | "failing") | null;
            enabled: boolean;
            events: string[];
            failingSince: string | null;
            headers: string[];
            id: ApiSchemas["Id"];
            keepsWaiting: boolean;
            updatedAt: string;
            url: string;
        };
        WebhookChanges: {
            description?: string;
            enabled?: boolean;
            events?: string[];
            headers?: {
                [key: string]: string;
            };
            url?: string;
            waiting?: "keep" | "drop";
        };
    }
