import type { ParsedUrlQuery } from 'node:querystring';
import type { Middleware } from 'koa';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { compileCheck } from '../../platform/schema/check-schema.js';
import type { Schema } from '../../platform/schema/schema.js';
import { admission } from '../admission/admission.js';
import { requireJsonType, requireObjectBody, bodyLimit } from '../requests/read-body.js';
import { declaredLength } from '../requests/read-bytes.js';
import { readFlagParameter, readTextParameter, readWholeParameter } from './read-parameter.js';
import { replyEncoded, replyJson, type LargeReply, type StreamReply, type WrittenReply } from '../replies/reply.js';
import {
  JSON_TYPE,
  Said,
  type Answer,
  type Parameter,
  type Parameters,
  type Route,
  type RouteContext,
} from './route.js';

/**
 * The middleware of a route. The order of checks is the same for all: access, body syntax, parameters, body, use case.
 * Everything that can be decided from the definition is decided here, once.
 */
export function answerRoute(app: App, route: Route): Middleware {
  const { access } = route;
  const readQuery = compileQuery(route.query ?? {});
  const checkBody = compileBody(route);
  const take = takeBody(app, route);
  const answers = [route.answers].flat() as readonly Answer[];
  const handle = route.handle as (input: object) => unknown;

  const runWith = (ctx: RouteContext, given: object | undefined): Promise<void> | null => {
    const input = { app, ctx, params: ctx.params, query: readQuery(ctx), body: checkBody(ctx), ...given };
    const returned = handle(input);
    if (returned instanceof Promise) return returned.then((value) => reply(ctx, answers, value));
    reply(ctx, answers, returned);
    return null;
  };
  const run = (ctx: RouteContext): Promise<unknown> | null => {
    const given = access.give?.(app, ctx);
    return given instanceof Promise ? given.then((settled) => runWith(ctx, settled)) : runWith(ctx, given);
  };
  const around: (ctx: RouteContext) => Promise<unknown> | null = access.around
    ? (ctx) => access.around!(app, ctx, async () => void (await run(ctx)))
    : run;
  const answer = (ctx: RouteContext): Promise<unknown> | null => {
    const taking = take(ctx);
    return taking ? taking.then(() => around(ctx)) : around(ctx);
  };
  return (context) => {
    const ctx = context as RouteContext;
    const admitting = access.admit?.(app, ctx);
    return admitting ? admitting.then(() => answer(ctx)) : answer(ctx);
  };
}

/** Monitoring must see a service that is full. */
const MONITORING = /^\/(api\/health(\/.*)?|metrics)$/;

/** Has the request admitted, with its body when the route has one that is JSON. A promise only when it takes time. */
function takeBody(app: App, route: Route): (ctx: RouteContext) => Promise<void> | null {
  if (MONITORING.test(route.path)) return () => null;
  const gate = admission(app);
  if (route.ownBody?.isRead === true) return () => null;
  const begin = (ctx: RouteContext): Promise<void> | null => gate.begin(ctx);
  if (!readsJson(route)) return route.ownBody ? (ctx) => gate.stream(ctx) : begin;
  const size = route.bodySize ?? 'document';
  const limit = bodyLimit(app.config, size);
  return (ctx) => {
    if (declaredLength(ctx.req) === 0) return begin(ctx);
    requireJsonType(ctx);
    return gate.readJson(ctx, limit, size).then((body) => {
      (ctx.request as { body?: unknown }).body = body;
    });
  };
}

/** Bytes and forms are left to the handler, which reads them as they arrive. */
function readsJson({ access, body, openBody, ownBody }: Route): boolean {
  return !!(access.readsBody ?? body ?? openBody) || (ownBody !== undefined && JSON_TYPE in ownBody.content);
}

function compileBody({ body, openBody, bodyIsOptional }: Route): (ctx: RouteContext) => unknown {
  if (openBody) {
    if (openBody.type !== 'object') return sentBody;
    return (ctx) => (bodyIsOptional && sentBody(ctx) === undefined ? {} : requireObjectBody(ctx));
  }
  if (!body) return () => undefined;
  const check = compileCheck(body);
  const takesObject = body.type === 'object';
  return (ctx) => {
    const sent = sentBody(ctx);
    if (sent === undefined && bodyIsOptional) return check({});
    return check(takesObject ? requireObjectBody(ctx) : sent);
  };
}

function sentBody({ request }: RouteContext): unknown {
  return (request as { body?: unknown }).body;
}

/** Reads the described parameters of a query; 400 INVALID_QUERY for one that is given twice or does not fit. */
function compileQuery(parameters: Parameters): (ctx: RouteContext) => Record<string, unknown> {
  const readers = Object.entries(parameters)
    .filter(([, { isOpen }]) => !isOpen)
    .map(([name, parameter]) => [name, readerOf(name, parameter)] as const);
  // Not even parsed: some use cases read the query themselves.
  if (readers.length === 0) return () => NOTHING;
  return ({ query }) => Object.fromEntries(readers.map(([name, read]) => [name, read(query)]));
}

const NOTHING = {};

function readerOf(name: string, { schema, required, cap }: Parameter): (query: ParsedUrlQuery) => unknown {
  const fallback = schema.default;
  if (schema.type === 'boolean') return (query) => readFlagParameter(query, name, fallback === true);
  if (schema.type === 'integer') {
    const range = { min: schema.minimum as number, max: schema.maximum as number };
    return (query) => {
      const value = readWholeParameter(query, name, range) ?? (fallback as number | undefined);
      return value === undefined ? undefined : Math.min(value, cap ?? range.max);
    };
  }
  const form = schema.pattern === undefined ? null : new RegExp(schema.pattern as string, 'u');
  return (query) => {
    const value = readTextParameter(query, name);
    if (value === undefined && required) throw invalid('INVALID_QUERY', `${name} is required`);
    if (value !== undefined) requireFitting(name, value, schema, form);
    return value ?? fallback;
  };
}

function requireFitting(name: string, value: string, schema: Schema, form: RegExp | null): void {
  const choices = schema.enum as readonly string[] | undefined;
  if (choices && !choices.includes(value)) {
    throw invalid('INVALID_QUERY', `${name} must be one of ${choices.join(', ')}`);
  }
  const maxLength = schema.maxLength as number | undefined;
  if (maxLength !== undefined && value.length > maxLength) {
    throw invalid('INVALID_QUERY', `${name} must have at most ${maxLength} characters`);
  }
  if (form && !form.test(value)) throw invalid('INVALID_QUERY', `${name} must be of the form ${form.source}`);
}

function reply(ctx: RouteContext, answers: readonly Answer[], returned: unknown): void {
  const said = returned instanceof Said ? returned : undefined;
  const answer = said?.status === undefined ? answers[0]! : answers.find(({ status }) => status === said.status)!;
  const value: unknown = said ? said.data : returned;
  const { status, kind } = answer;
  if (kind === 'own') return;
  if (kind === 'encoded') {
    replyEncoded(ctx, value as string | WrittenReply | LargeReply | StreamReply, status);
  } else if (kind === 'plain') {
    replyJson(ctx, value as object, status);
  } else {
    const message = said?.message ?? answer.description;
    replyJson(ctx, kind === 'done' ? { success: true, message } : { success: true, data: value, message }, status);
  }
}
