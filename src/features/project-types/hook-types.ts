/**
 * Types of own code that follow the types of a project: which handlers its files may have, and what each is called with
 * and returns. The client is that of the package `@bsvc/client`.
 */
export const HOOK_TYPES = `/** Own code as a file exports it by default: \`export default { … } satisfies Handlers\`. */
type Api = import('@bsvc/client').Client<Project> & {
  /** The same with the key and token of the caller, under the rules. */
  as(caller: HandlerCaller): import('@bsvc/client').Client<Project>;
};
type Names = Exclude<keyof Project, 'users'> & string;
type DocumentOf<N extends keyof Project> = Project[N]['Document'];

export interface HandlerCaller {
  userId: string | null;
  roles: string[];
  ip: string | null;
}

interface Called {
  caller: HandlerCaller;
  api: Api;
  /** The header of the request, or null. */
  idempotencyKey: string | null;
}

/** What is to be written: \`document\`, or \`documents\` where the request has a list of them. */
export type BeforeCall<N extends Names> = Called & { event: string } & (
    | { document: DocumentOf<N>; before?: DocumentOf<N>; documents?: undefined }
    | { document?: undefined; before?: undefined; documents: { document: DocumentOf<N>; before?: DocumentOf<N> }[] }
  );

export interface Refused {
  allow: false;
  status?: 400 | 401 | 403 | 404 | 409 | 410 | 412 | 413 | 422;
  code?: string;
  message?: string;
}

/** \`set\` fills fields declared @hook; a list of it where there was a list of documents. */
export type HookAnswer<N extends keyof Project> =
  | Refused
  | { allow: true; set?: Project[N]['Update'] | (Project[N]['Update'] | null)[] | null };

export interface DeliverCall extends Omit<Called, 'idempotencyKey'> {
  event: string;
  document: {
    template: 'verification' | 'password-reset' | 'login-code' | 'email-change' | 'email-change-notice' | 'mfa-reset-notice' | 'invite';
    to: string;
    projectName: string;
    code?: string;
    link?: string;
    minutes?: number;
    inviteUrl?: string;
    user: DocumentOf<'users'> | null;
  };
}

/** A change of a document, as in webhook events. */
export interface AfterCall<N extends keyof Project> {
  /** Equal for repeated deliveries. */
  id: string;
  event: string;
  timestamp: string;
  documentId: string;
  document: DocumentOf<N>;
  /** Of updates and removals: the old values of changed fields. */
  before?: Partial<DocumentOf<N>>;
  beforeOmitted?: true;
  actor: { type: 'user' | 'key' | 'operator' | 'system'; id?: string };
  api: Api;
}

export interface AddressCall {
  request: {
    method: string;
    path: string;
    query: Record<string, string | string[]>;
    headers: Record<string, string>;
    /** JSON where the request says so, else text. */
    readonly body: any;
    rawBody: Uint8Array;
  };
  caller: HandlerCaller;
  api: Api;
}
type Reply = Response | { status?: number; headers?: Record<string, string>; body?: unknown } | null | undefined | void;
type Address = (call: AddressCall) => Reply | Promise<Reply>;

type Handle<Call, Answer> = (call: Call) => Answer | Promise<Answer>;
type CollectionOf<Event> = Event extends \`\${infer N}.\${string}\` ? (N extends keyof Project ? N : never) : never;
type Write = 'create' | 'update' | 'delete';
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The handlers of a file, by name; \`Others\` are names of its own, such as those of schedules. */
export type Handlers<Others extends string = never> = {
  [E in \`\${Names}.\${Write}\`]?: Handle<BeforeCall<CollectionOf<E> & Names>, HookAnswer<CollectionOf<E>>>;
} & {
  [E in \`\${keyof Project & string}.\${Write}\` as \`after.\${E}\`]?: Handle<AfterCall<CollectionOf<E>>, unknown>;
} & {
  'users.signup'?: Handle<Called & { event: string; document: DocumentOf<'users'> }, HookAnswer<'users'>>;
  'users.login'?: Handle<Called & { event: string; document: DocumentOf<'users'> & { method: string } }, Refused | { allow: true }>;
  'users.deliver'?: Handle<DeliverCall, { delivered: boolean }>;
} & {
  [A in \`\${Method} /\${string}\`]?: Address | { public?: boolean; handle: Address };
} & { [O in Others]?: Handle<{ api: Api; [name: string]: any }, unknown> };
`;
