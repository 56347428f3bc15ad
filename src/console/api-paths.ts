import type { ApiSchemas } from './api-routes.js';

type Routes = ApiSchemas['ApiRoutes'];
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
type PathOf<M extends Method, Key = keyof Routes> = Key extends `${M} ${infer Path}` ? Path : never;

/** A path of the operators' API as its document writes it, such as `/api/projects/{projectId}`. */
export type ApiPath<M extends Method = Method> = PathOf<M>;

export type RouteOf<M extends Method, P extends ApiPath> = `${M} ${P}` extends infer Key extends keyof Routes
  ? Routes[Key]
  : never;

/** What a route answers as `data`. */
export type DataOf<M extends Method, P extends ApiPath> = RouteOf<M, P>['data'];

/** What is not there is not sent; nor is what is empty. */
type Loosely<Query> = { [Name in keyof Query]: Query[Name] | null | undefined | '' };
/** Where any parameter may be given, one may be given twice. */
type QueryOf<M extends Method, P extends ApiPath> =
  RouteOf<M, P> extends { query?: infer Query }
    ? Loosely<NonNullable<Query>> | (string extends keyof Query ? URLSearchParams : never)
    : Record<string, never>;

/** What a route takes beside its path. */
export type AskedOf<M extends Method, P extends ApiPath> = Pick<RouteOf<M, P>, keyof RouteOf<M, P> & 'body'> &
  (RouteOf<M, P> extends { form: unknown } ? { form: FormData } : unknown) &
  (RouteOf<M, P> extends { query?: unknown } ? { query?: QueryOf<M, P> } : unknown);

declare const path: unique symbol;

/** A path with its parameters filled in, and perhaps a query: the compiler knows by it which routes it leads to. */
export type Address<P extends ApiPath> = string & { readonly [path]: P };

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
type Values<Path extends string> = [NamesIn<Path>] extends [never]
  ? []
  : [values: { readonly [Name in NamesIn<Path>]: string }];

/** Fills in a path's parameters. */
export function pathTo<P extends ApiPath>(template: P, ...values: Values<P>): Address<P> {
  return filled(template, values[0]) as Address<P>;
}

type Below<P extends ApiPath, Path = ApiPath> = Path extends `${P}${infer Rest}` ? Rest : never;

/** The address of what stands below another one: `below(user, '/sessions/{session}', { session })`. */
export function below<P extends ApiPath, Rest extends Below<P>>(
  address: Address<P>,
  rest: Rest,
  ...values: Values<Rest>
): Address<Extract<ApiPath, `${P}${Rest}`>> {
  return (address + filled(rest, values[0])) as Address<Extract<ApiPath, `${P}${Rest}`>>;
}

/** The address with a query: two queries of one list are two addresses. */
export function withQuery<P extends ApiPath<'GET'>>(address: Address<P>, query: QueryOf<'GET', P>): Address<P> {
  return (address + queryOf(query)) as Address<P>;
}

/** A query string without what is empty. */
export function queryOf(values: object): string {
  const query = new URLSearchParams(values instanceof URLSearchParams ? values : undefined);
  for (const [name, value] of Object.entries(values) as [string, string | number | boolean | null | undefined][]) {
    if (value !== undefined && value !== null && value !== '') query.set(name, String(value));
  }
  const written = query.toString();
  return written === '' ? '' : `?${written}`;
}

function filled(template: string, values: Readonly<Record<string, string>> = {}): string {
  return template.replace(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(values[name]!));
}
