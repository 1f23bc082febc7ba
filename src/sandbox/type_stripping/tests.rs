use proptest::prelude::*;

use super::*;

/// Returns `source` without its types, after a check of everything that any result has.
fn strip(source: &str) -> String {
    let stripped = strip_types(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    assert_eq!(stripped.chars().count(), source.chars().count(), "{source}");
    for (old, new) in source.chars().zip(stripped.chars()) {
        assert_eq!(is_line_break(old), is_line_break(new), "line breaks of {source}");
    }
    stripped.into_owned()
}

/// Checks pairs of scripts and results. A run of spaces in a result is as long as the text before.
fn check(pairs: &[(&str, &str)]) {
    for (source, expected) in pairs {
        assert_eq!(strip(source), *expected, "{source}");
    }
}

/// Checks that scripts are returned without a copy.
fn check_unchanged(sources: &[&str]) {
    for source in sources {
        let stripped = strip_types(source);
        assert!(matches!(stripped, Ok(Cow::Borrowed(same)) if same == *source), "{stripped:?}");
    }
}

#[test]
fn annotations_become_spaces() {
    check(&[
        ("let a: number = 1", "let a         = 1"),
        ("let a: A", "let a;  "),
        (
            "const a: A | B & C[] = x, b: [d?: E, ...f: G[]] = y",
            "const a              = x, b                     = y",
        ),
        ("let late!: { a: () => void; b?: string };", "let late                                ;"),
        ("function f(a: A, b?: B, ...c: C[]): D {}", "function f(a   , b    , ...c     )    {}"),
        ("function f(this: T, a = 1 as A) {}", "function f(         a = 1     ) {}"),
        ("function f(this: T): void {}", "function f(       )       {}"),
        ("function f({ a, b: [c] }: P = {}) {}", "function f({ a, b: [c] }    = {}) {}"),
        ("for (const a of b as B[]) {}", "for (const a of b       ) {}"),
        ("try {} catch (e: unknown) {}", "try {} catch (e         ) {}"),
        ("f((a: A): a is B => a)", "f((a   )         => a)"),
        ("function f(a): asserts a is A {}", "function f(a)                 {}"),
        ("function f(a): asserts this {}", "function f(a)               {}"),
        ("const f = async (a: A): Promise<A> => a", "const f = async (a   )             => a"),
        (
            "let s: unique symbol, k: keyof typeof a.b;",
            "let s               , k                  ;",
        ),
    ]);
}

#[test]
fn types_of_every_form_end_where_typescript_ends_them() {
    let types = [
        "`a${B}c`",
        "-1",
        "\"a\" | 'b'",
        "import('a').B",
        "typeof import('a')",
        "readonly A[]",
        "A<B<C<D>>>",
        "A[B][]",
        "A extends (infer B)[] ? B : C extends D ? E : never",
        "A extends (infer B extends C) ? B : D",
        "{ readonly [K in A as `x${K}`]-?: B; }",
        "{ (a: A): B; new (a: A): B; [key: string]: C; get d(): E }",
        "abstract new () => A",
        "new <A>(a: A) => B",
        "<const A extends B = C>(a: A) => a is A",
        "((a: A) => B) | null",
        "(a: A, [b]: C, { d }: E, ...f: G[]) => (h?: I) => void",
        "this",
        "void",
        "any",
        "A.B",
        "[a: A, b?: B, ...c: C[]]",
        "| A | B",
        "A extends () => B extends C ? D : E ? F : G",
    ];
    for kind in types {
        let blank = " ".repeat(kind.len() + 2);
        assert_eq!(strip(&format!("let a: {kind} = 1;")), format!("let a{blank} = 1;"));
        // A function type ends at the last arrow: the arrow function must have brackets around it.
        if !kind.contains("=>") || kind.ends_with("null") {
            let source = format!("const f = (): {kind} => {{}};");
            assert_eq!(strip(&source), format!("const f = (){blank} => {{}};"));
        }
        let stripped = strip(&format!("type A = {kind}\nlet a = b as {kind};"));
        assert_eq!(stripped.split_whitespace().collect::<String>(), ";leta=b;", "{kind}");
    }
}

#[test]
fn type_parameters_and_arguments_become_spaces() {
    check(&[
        ("function f<A, B extends C = D>(a) {}", "function f                    (a) {}"),
        (
            "class A<T> extends B<T>.c<T> implements C<T>, D {}",
            "class A    extends B   .c                       {}",
        ),
        ("class A<const T> extends B<T> {}", "class A          extends B    {}"),
        (
            "const f = <T>(a: T) => a, g = <T,>(a) => a",
            "const f =    (a   ) => a, g =     (a) => a",
        ),
        ("async <T>(a: T) => a", "async    (a   ) => a"),
        (
            "const f = async <T extends A>(a: T): Promise<T> => a",
            "const f = async              (a   )             => a",
        ),
        (
            "f<A>(a); a.b<A, B<C>>(); new A<B>(); a?.<A>(b); a?.b<A>()",
            "f   (a); a.b         (); new A   (); a?.   (b); a?.b   ()",
        ),
        ("new A<B>; const g = f<A>;", "new A   ; const g = f   ;"),
        (
            "a.reduce<Map<string, A[]>>((b: B, c) => b)",
            "a.reduce                  ((b   , c) => b)",
        ),
        (
            "const a = { b<T>(c: T): T { return c }, async *d<T>() {} }",
            "const a = { b   (c   )    { return c }, async *d   () {} }",
        ),
        ("new Array < A > ()", "new Array       ()"),
        ("f<A>(b)[0]; a < b > (c as C)", "f   (b)[0]; a < b > (c     )"),
    ]);
}

#[test]
fn assertions_become_spaces() {
    check(&[
        ("a as A;", "a     ;"),
        ("(a as any as A).b", "(a            ).b"),
        ("a as const satisfies A;", "a                     ;"),
        ("a! + b!.c![0]!() + d!;", "a  + b .c [0] () + d ;"),
        ("a = b as A ? c as B : d as C;", "a = b      ? c      : d     ;"),
        ("f(a as A, { b: c as B, d }, [e as C])", "f(a     , { b: c     , d }, [e     ])"),
        ("`${a as A}`", "`${a     }`"),
        ("x = <A>a + <const>{}.b + (<B>c).d", "x =    a +        {}.b + (   c).d"),
        ("a as number < b", "a           < b"),
        ("switch (a as A) { case B as C: }", "switch (a     ) { case B     : }"),
        ("(a as A).b = 1; (a as A) = 1;", "(a     ).b = 1; (a     ) = 1;"),
        ("1 + 2 as number + 3", "1 + 2           + 3"),
        ("a = b as A // c\n[d as D]", "a = b as A // c\n[d as D]"),
    ]);
}

#[test]
fn members_of_classes_lose_their_types_and_modifiers() {
    check(&[
        ("class A { private readonly a: A = 1; }", "class A {                  a    = 1; }"),
        (
            "class A { public static override async a?(): A {} }",
            "class A {        static          async a ()    {} }",
        ),
        (
            "class A { a!: A; b?: B; readonly; declare; }",
            "class A { a    ; b    ; readonly; declare; }",
        ),
        (
            "class A { declare a: A; abstract b(): B; c(): void; c() {} }",
            "class A { ;           ; ;              ; ;        ; c() {} }",
        ),
        ("class A { [key: string]: A; c: C; }", "class A { ;               ; c   ; }"),
        (
            "class A { constructor(a: A); constructor(a: any) {} }",
            "class A { ;                ; constructor(a     ) {} }",
        ),
        (
            "class A { get a(): A {} set a(b: A) {} accessor c: C; }",
            "class A { get a()    {} set a(b   ) {} accessor c   ; }",
        ),
        (
            "abstract class A { protected abstract a: A; }",
            "         class A { ;                      ; }",
        ),
        (
            "class A { static { let a: A; } #b: B = 1 }",
            "class A { static { let a   ; } #b    = 1 }",
        ),
        ("const A = class<T> { a: T }", "const A = class    { a;   }"),
    ]);
}

#[test]
fn statements_that_only_declare_types_become_empty_statements() {
    let statements = [
        "interface A<T> extends B<T>, C { a: () => { b: D } }",
        "type A<T = B> = { a: T };",
        "declare const a: A, b: B;",
        "declare function f<T>(a: T): A;",
        "declare class A<T> extends B<T> implements C { a(): void; b: D }",
        "declare abstract class A {}",
        "declare enum A { B }",
        "declare const enum A { B }",
        "declare namespace A.B { const c: D; }",
        "declare module 'a' { export default b; }",
        "declare module 'a'",
        "declare global { var a: A }",
        "namespace A { export type B = C; interface D {} namespace E {} }",
        "function f(a: A): B;",
        "import type A from 'a';",
        "import type { A, B as C } from 'a' with { type: 'json' };",
        "import type * as A from 'a'",
        "import { type A, type B as C } from 'a';",
        "export type A = B;",
        "export interface A {}",
        "export declare const a: A;",
        "export type { A } from 'a';",
        "export { type A };",
        "export {};",
    ];
    for statement in statements {
        let source = format!("a;\n{statement}\nlet b");
        let blank = " ".repeat(statement.len() - 1);
        assert_eq!(strip(&source), format!("a;\n;{blank}\nlet b"));
    }
}

#[test]
fn a_semicolon_keeps_statements_apart() {
    check(&[
        ("a\ntype A = B\n(c)", "a\n;         \n(c)"),
        ("a\ninterface A {}\n[b]", "a\n;             \n[b]"),
        ("a = b as A\n(c)", "a = b ;   \n(c)"),
        ("a = b as A // c\n(d).e", "a = b ;    // c\n(d).e"),
        ("a = b as A\n+ c", "a = b     \n+ c"),
        ("let a: A\n(b)", "let a;  \n(b)"),
        ("let a: A\n[b] = c", "let a;  \n[b] = c"),
        ("a = b! // c\nd", "a = b; // c\nd"),
        ("if (a) type A = B\nc()", "if (a) ;         \nc()"),
        (
            "class A { a = 1\n private [b] = 2\n public *c() {} }",
            "class A { a = 1\n ;       [b] = 2\n ;      *c() {} }",
        ),
        (
            "class A { a = 1\n declare b: B\n [c] = 2 }",
            "class A { a = 1\n ;           \n [c] = 2 }",
        ),
        (
            "class A { get: A\n set?: B\n static: C\n d() {} }",
            "class A { get;  \n set ;  \n static;  \n d() {} }",
        ),
        ("class A { a = b as B // c\n ; }", "class A { a = b ;    // c\n ; }"),
    ]);
}

#[test]
fn no_line_ends_where_javascript_forbids_it() {
    check(&[
        ("(a): Promise<\nA\n> => a", "(a           \n \n) => a"),
        ("(a): A[\n] => a", "(a     \n) => a"),
        ("(a) /*\n*/ : A => a", "(a    \n     ) => a"),
        ("async <\nT\n>(a: T) => a", "async (\n \n  a   ) => a"),
        ("return <T>\n(a: T) => a", "return (  \n a   ) => a"),
        ("throw <T\n>(a) => a", "throw ( \n  a) => a"),
        ("f<\nA\n>(b)", "f \n \n (b)"),
    ]);
}

#[test]
fn an_arrow_function_differs_from_an_expression_in_brackets() {
    check(&[
        ("a ? (b): B => c : d", "a ? (b)    => c : d"),
        ("a ? (b: B) => c : (d): D => e", "a ? (b   ) => c : (d)    => e"),
        ("a ? (b) => ({ c }) : (d: D) => e", "a ? (b) => ({ c }) : (d   ) => e"),
        (
            "f((a?: A, { b }: B = {}, [c]: C = []): D => {})",
            "f((a    , { b }    = {}, [c]    = [])    => {})",
        ),
        ("a ? (b, c as C) : d", "a ? (b, c     ) : d"),
        ("(): (A | B) => a", "()          => a"),
        ("(): (() => A) => a", "()            => a"),
        ("a => (b: B) => async (c: C) => d", "a => (b   ) => async (c   ) => d"),
    ]);
    check_unchanged(&[
        "a ? (b) : c => d",
        "a ? (b) : (c) => d",
        "a ? (b, c) : d",
        "a ? (b = 1) : { c: d }",
        "a ? ({ b }) : [c]",
        "a ? async (b) : c",
        "a ? (b) : /[:)]/.test(c) ? (d) : e",
        "async (a, b); async => a; async (async) => await async",
        "a ? b ? (c) : d : (e)",
    ]);
}

#[test]
fn javascript_is_returned_without_a_copy() {
    check_unchanged(&[
        "",
        "return await f(1, ...a)",
        "a < b; a < b && c > (d); f(a < b, c > (d)); a<b||c>d; (a < b) > (c); i<n; a<b>c; a<b>=c",
        "a << b >> c >>> d; a >>= b; x = a <b> c",
        "if (a) /re:[/<A>]/g.test(b); a / b / c; x = a++ / 2; y = (a) / b; { } /b: c/.test(d)",
        "`a${`b${{ c: 1 }}`}: number`; `\\`${a}`; f`<T>`",
        "'a: number'; \"x as A\\\"\"; // let a: A\n/* interface B {} */ a <!--b",
        "label: for (;;) { break label }\nfor (const a of b) ; for (a in b) ; for (let a in b) ;",
        "for (async of => a; ;) ; for await (const a of b) ; do a; while (b) c",
        "switch (a) { case b: c; case (d): e; default: f }",
        "x = { a: b, c, get d() { return 1 }, set d(e) {}, async *f() {}, [g]: h, 'i': 1, get: 2, async: 3 }",
        "({ a = 1, b: { c }, ...d } = e); [a, , ...b] = c; ({ get, set, async, static: a })",
        "class A extends (b, c) { static #a = 1; get; set; static; static async *b() {} 'c' = 1; [d]\n*e() {} static {} }",
        "let a\n!function () {}()\nlet b\n++c\nlet d = e\n/f/g",
        "var a = b ? c : d ? e : f, g = h => i => ({ j })",
        "function* f() { yield\nyield a; yield* b; const c = yield; }",
        "async function f() { await a; for await (const b of c) ; await using d = e; }",
        "new.target; new A; new (a.b()).c; import('a'); import.meta; super.a; #a in b",
        "0x1F; .5e-3; 1_000n; 1..toString(); 5.0.toFixed(); a?.5:1; a ?. b; a?.[b]?.(c)",
        "a\u{a0}=\u{feff}1; ünï = \\u{61}b; \u{2028}a; '\u{2028}'",
        "a ||= b; a &&= c; a ??= d; a **= 2; a = b = c; a, b",
        "if (a) b\nelse if (c) d\nelse e",
        "try { } catch { } finally { }\nthrow a\n",
        "i++\n() => i",
        "let\na; var b\nc",
    ]);
}

#[test]
fn words_of_typescript_may_be_names() {
    check_unchanged(&[
        "type = 1; type\nA = b; type(a); type.a; let type, as, of; as = as; as\nas",
        "declare\nlet a; declare = 1; abstract\nclass A {}; namespace\nA\n{}",
        "interface\nA\n{}; module.a; module\n('a'); global = 1; is = asserts; infer; keyof; unique",
        "const { type, as: b, readonly } = a; f(type, declare, namespace, abstract, override)",
        "x = { type: 1, as: 2, enum: 3, interface() {}, async declare() {}, get readonly() {} }",
        "class A { type; as = 1; declare; readonly = 2; private() {} public; abstract = 3; static static }",
        "public_ = (readonly) => readonly; (public, b) => c; satisfies / 2; a.enum.namespace",
        "enum_ = 1; a\nas\nb; a\nsatisfies\nb",
    ]);
}

/// Scripts as models write them, each with the output of ts-blank-space 0.9 without the spaces at
/// the ends of lines.
const SNIPPETS: &str = r##"const n: number = 1; let s: string | undefined = "a"; var f: (x: number) => string = (x) => s + x; return f(n);
-----
const n         = 1; let s                     = "a"; var f                        = (x) => s + x; return f(n);
=====
interface Issue { id: number; title: string; labels?: string[]; nested: { a: { b: () => void } } }
type Page<T> = { items: T[]; next?: string };
const page: Page<Issue> = { items: [{ id: 1, title: "x", nested: { a: { b() {} } } }] };
return page.items.map((issue: Issue): number => issue.id);
-----


const page              = { items: [{ id: 1, title: "x", nested: { a: { b() {} } } }] };
return page.items.map((issue       )         => issue.id);
=====
async function fetchAll<T extends { id: number }>(ids: readonly number[], get: (id: number) => Promise<T>): Promise<T[]> {
  const out: T[] = [];
  for (const id of ids) { out.push(await get(id)); }
  return out;
}
return await fetchAll<{ id: number }>([1, 2], async (id) => ({ id }));
-----
async function fetchAll                          (ids                   , get                            )               {
  const out      = [];
  for (const id of ids) { out.push(await get(id)); }
  return out;
}
return await fetchAll                ([1, 2], async (id) => ({ id }));
=====
const results = await Promise.all([1, 2, 3].map(async (n: number): Promise<number> => n * 2));
const total = results.reduce<number>((sum, value) => sum + value, 0);
return { total, max: Math.max(...(results as number[])) };
-----
const results = await Promise.all([1, 2, 3].map(async (n        )                  => n * 2));
const total = results.reduce        ((sum, value) => sum + value, 0);
return { total, max: Math.max(...(results            )) };
=====
function pick<T, K extends keyof T>(object: T, ...keys: K[]): Pick<T, K> {
  const out = {} as Pick<T, K>;
  for (const key of keys) out[key] = object[key];
  return out;
}
return pick({ a: 1, b: 2 }, "a");
-----
function pick                      (object   , ...keys     )             {
  const out = {}              ;
  for (const key of keys) out[key] = object[key];
  return out;
}
return pick({ a: 1, b: 2 }, "a");
=====
class Stack<T> implements Iterable<T> {
  private readonly items: T[] = [];
  static count = 0;
  public size?: number;
  protected name!: string;
  constructor(initial?: T[], public_ = 1) { if (initial) this.items = initial; Stack.count++; }
  push(item: T): this { this.items.push(item); return this; }
  get top(): T | undefined { return this.items[this.items.length - 1]; }
  set top(value: T | undefined) { this.items[this.items.length - 1] = value!; }
  *[Symbol.iterator](): Iterator<T> { yield* this.items; }
}
return [...new Stack<number>([1]).push(2).push(3), Stack.count];
-----
class Stack                           {
                   items      = [];
  static count = 0;
         size         ;
            name         ;
  constructor(initial      , public_ = 1) { if (initial) this.items = initial; Stack.count++; }
  push(item   )       { this.items.push(item); return this; }
  get top()                { return this.items[this.items.length - 1]; }
  set top(value               ) { this.items[this.items.length - 1] = value ; }
  *[Symbol.iterator]()              { yield* this.items; }
}
return [...new Stack        ([1]).push(2).push(3), Stack.count];
=====
abstract class Shape { abstract area(): number; abstract readonly kind: string; describe(): string { return `${this.kind}: ${this.area().toFixed(1)}`; } }
class Circle extends Shape { override readonly kind = "circle"; constructor(private_: number) { super(); this.r = private_; } r: number; area(): number { return Math.PI * this.r ** 2; } }
return new Circle(1).describe();
-----
         class Shape {                                                          describe()         { return `${this.kind}: ${this.area().toFixed(1)}`; } }
class Circle extends Shape {                   kind = "circle"; constructor(private_        ) { super(); this.r = private_; } r        ; area()         { return Math.PI * this.r ** 2; } }
return new Circle(1).describe();
=====
function isString(value: unknown): value is string { return typeof value === "string"; }
function assertNumber(value: unknown): asserts value is number { if (typeof value !== "number") throw new TypeError("no"); }
assertNumber(1);
return [1, "a", null].filter(isString);
-----
function isString(value         )                  { return typeof value === "string"; }
function assertNumber(value         )                          { if (typeof value !== "number") throw new TypeError("no"); }
assertNumber(1);
return [1, "a", null].filter(isString);
=====
function over(a: string): string;
function over(a: number): number;
function over(a: any): any { return a; }
return over(1);
-----


function over(a     )      { return a; }
return over(1);
=====
declare const context: { user: string };
declare function tool(name: string): Promise<unknown>;
declare let counter: number, other: string;
return typeof context;
-----



return typeof context;
=====
const config = { retries: 3, mode: "fast" } as const satisfies Record<string, unknown>;
return config.retries!;
-----
const config = { retries: 3, mode: "fast" }                                           ;
return config.retries ;
=====
const map = new Map<string, Array<[number, string]>>();
map.set("a", [[1, "b"]]);
return map.get("a")![0]![1]!.length;
-----
const map = new Map                                 ();
map.set("a", [[1, "b"]]);
return map.get("a") [0] [1] .length;
=====
const id = <T>(x: T): T => x; const aid = async <T,>(x: T) => x; return [id<number>(1), await aid("b")];
-----
const id =    (x   )    => x; const aid = async     (x   ) => x; return [id        (1), await aid("b")];
=====
const longer = (
  first: number,
  second: string = "x",
  { third, fourth: { fifth } }: { third?: number; fourth: { fifth: string } } = { fourth: { fifth: "y" } },
  ...rest: unknown[]
): {
  a: number;
} => ({ a: first + rest.length });
return longer(1, "b", undefined, 3, 4);
-----
const longer = (
  first        ,
  second         = "x",
  { third, fourth: { fifth } }                                                = { fourth: { fifth: "y" } },
  ...rest


) => ({ a: first + rest.length });
return longer(1, "b", undefined, 3, 4);
=====
const run = async (
  query: string,
): Promise<
  string[]
> => [query];
return await run("a");
-----
const run = async (
  query        ,


) => [query];
return await run("a");
=====
function outer(this: { x: number }, y: number) { return this.x + y; }
return outer.call({ x: 1 }, 2);
-----
function outer(                     y        ) { return this.x + y; }
return outer.call({ x: 1 }, 2);
=====
try { throw new Error("boom"); } catch (error: unknown) { return (error as Error).message; }
-----
try { throw new Error("boom"); } catch (error         ) { return (error         ).message; }
=====
type A = { kind: "a" } | { kind: "b"; n: number };
const value = { kind: "b", n: 2 } as A;
switch (value.kind) { case "a": return 0; case "b": return (value as Extract<A, { kind: "b" }>).n; }
-----

const value = { kind: "b", n: 2 }     ;
switch (value.kind) { case "a": return 0; case "b": return (value                             ).n; }
=====
type Fn = typeof Math.max; type El = (typeof list)[number]; const list = ["a", "b"] as const;
const fn: Fn = Math.max; const el: El = list[0]; return [fn(1, 2), el];
-----
                                                            const list = ["a", "b"]         ;
const fn     = Math.max; const el     = list[0]; return [fn(1, 2), el];
=====
type Mapped<T> = { readonly [K in keyof T as `get${Capitalize<string & K>}`]-?: () => T[K] };
const mapped = { getA: () => 1 } as Mapped<{ a: number }>; return mapped.getA();
-----

const mapped = { getA: () => 1 }                         ; return mapped.getA();
=====
type Cond<T> = T extends (infer U)[] ? U : T extends Promise<infer V> ? V : never;
const cond: Cond<number[]> = 3; return cond;
-----

const cond                 = 3; return cond;
=====
let late!: string; late = "z"; const { a, b: [c] }: { a: number; b: string[] } = { a: 1, b: ["q"] }; return [late, a, c];
-----
let late         ; late = "z"; const { a, b: [c] }                             = { a: 1, b: ["q"] }; return [late, a, c];
=====
for (const [key, value] of Object.entries({ a: 1 } as Record<string, number>)) { return [key, value]; }
-----
for (const [key, value] of Object.entries({ a: 1 }                          )) { return [key, value]; }
=====
for (let i: number = 0, n: number = 3; i < n; i++) { if (i as number === 2) return i; }
-----
for (let i         = 0, n         = 3; i < n; i++) { if (i           === 2) return i; }
=====
const sym: unique symbol = Symbol("s"); const big: bigint = 10n; const re: RegExp = /<T>(x: T) => [/]"/g; return [typeof sym, String(big), re.source];
-----
const sym                = Symbol("s"); const big         = 10n; const re         = /<T>(x: T) => [/]"/g; return [typeof sym, String(big), re.source];
=====
const template: `id-${number}` = `id-${1 as number}`; return `${template as string} ${(() => { const z: number = 2; return z; })()}`;
-----
const template                 = `id-${1          }`; return `${template          } ${(() => { const z         = 2; return z; })()}`;
=====
const o = { m<T>(x: T): T { return x; }, async am(x?: number): Promise<number> { return x ?? 1; }, get g(): number { return 4; }, ["c" + 1](y: string): string { return y; } };
return [o.m<string>("a"), await o.am(), o.g, o.c1("e")];
-----
const o = { m   (x   )    { return x; }, async am(x         )                  { return x ?? 1; }, get g()         { return 4; }, ["c" + 1](y        )         { return y; } };
return [o.m        ("a"), await o.am(), o.g, o.c1("e")];
=====
const cb = (err: Error | null, data?: { items: Array<Map<string, number>> }) => err ?? data?.items.length; return cb(null, { items: [] });
-----
const cb = (err              , data                                        ) => err ?? data?.items.length; return cb(null, { items: [] });
=====
const v = 5; return v > 3 ? (v) : 2;
-----
const v = 5; return v > 3 ? (v) : 2;
=====
const f1 = true ? (x: number): number => x + 1 : (y: number): number => y; return f1(1);
-----
const f1 = true ? (x        )         => x + 1 : (y        )         => y; return f1(1);
=====
const t = false; const w = t ? (1) : ((q: number) => q)(7); return w;
-----
const t = false; const w = t ? (1) : ((q        ) => q)(7); return w;
=====
const a1 = 1; const e = (q: number) => q * 2; return a1 ? (a1) : e => e;
-----
const a1 = 1; const e = (q        ) => q * 2; return a1 ? (a1) : e => e;
=====
const data: any = { list: [{ n: 1 }] };
const sum = (data.list as Array<{ n: number }>).reduce((acc, { n }) => acc + n, 0) as number
;[sum].forEach(() => {})
return sum
-----
const data      = { list: [{ n: 1 }] };
const sum = (data.list                        ).reduce((acc, { n }) => acc + n, 0)
;[sum].forEach(() => {})
return sum
=====
const first = [1, 2] as number[]
const second = first
type Unused = string
[0].forEach((n: number) => { first.push(n) })
return [first, second]
-----
const first = [1, 2];
const second = first
;
[0].forEach((n        ) => { first.push(n) })
return [first, second]
=====
let out = 1
type T1 = number
(function () { out = 2 })()
return out
-----
let out = 1
;
(function () { out = 2 })()
return out
=====
const u = { a: 1 } as { a: number }
(function () {})
return u
-----
const u = { a: 1 };
(function () {})
return u
=====
class Q { a = 1
  private ["b"] = 2
  public *gen(): Generator<number> { yield 1 }
  static: number
  get: string
  foo() { return this.b }
  declare skip: number
  [key: string]: any
  readonly c?: number = 4; }
return [new Q().foo(), Object.keys(new Q())];
-----
class Q { a = 1
  ;       ["b"] = 2
         *gen()                    { yield 1 }
  static
  get
  foo() { return this.b }
  ;

           c          = 4; }
return [new Q().foo(), Object.keys(new Q())];
=====
const nested: Array<Array<Array<number>>> = [[[1]]]; const m2 = new Map<string, Map<string, Set<number>>>([["a", new Map()]]); return [nested, m2.size, 16 >> 2, 16 >>> 2, 3 >= 2];
-----
const nested                              = [[[1]]]; const m2 = new Map                                  ([["a", new Map()]]); return [nested, m2.size, 16 >> 2, 16 >>> 2, 3 >= 2];
=====
import type { Foo } from "foo";
export type Bar = string;
export interface Baz { a: number }
return 1;
-----



return 1;
=====
if (true) type Inner = number
return 3
-----
if (true) ;
return 3
=====
const opt = { a: { b: (n: number) => n } } as { a?: { b?: <T>(n: T) => T } }; return opt?.a?.b?.<number>(3) ?? opt.a!.b!(1);
-----
const opt = { a: { b: (n        ) => n } }                                  ; return opt?.a?.b?.        (3) ?? opt.a .b (1);
=====
const g = Array.from<number, string>({ length: 2 } as ArrayLike<number>, (_: number, i: number): string => `${i}`); return g;
-----
const g = Array.from                ({ length: 2 }                     , (_        , i        )         => `${i}`); return g;
=====
const newable: new (x: number) => { x: number } = class { x: number; constructor(x: number) { this.x = x; } }; return new newable(3).x;
-----
const newable                                   = class { x        ; constructor(x        ) { this.x = x; } }; return new newable(3).x;
=====
const abs: abstract new () => object = Object; return typeof abs;
-----
const abs                            = Object; return typeof abs;
=====
const fnType: ((a: number) => (b: string) => void) | null = null; const tuple: [first: string, second?: number, ...rest: boolean[]] = ["a"]; return [fnType, tuple];
-----
const fnType                                              = null; const tuple                                                       = ["a"]; return [fnType, tuple];
=====
const guard = (x: unknown): x is { a: number } => typeof x === "object"; return guard({});
-----
const guard = (x         )                     => typeof x === "object"; return guard({});
=====
const acc = [3, 1].sort((l: number, r: number): number => l - r)[0] as number; return acc + 1;
-----
const acc = [3, 1].sort((l        , r        )         => l - r)[0]          ; return acc + 1;
=====
const s1 = "a: number"; const s2 = 'x as string'; /* let z: number */ // interface X {}
return s1 + s2 + `as ${s1} satisfies`;
-----
const s1 = "a: number"; const s2 = 'x as string'; /* let z: number */ // interface X {}
return s1 + s2 + `as ${s1} satisfies`;
=====
label: for (const i of [1, 2, 3] as const) { for (;;) { if (i < 2) continue label; break label; } }
return "ok";
-----
label: for (const i of [1, 2, 3]         ) { for (;;) { if (i < 2) continue label; break label; } }
return "ok";
=====
const partial: Partial<Record<"a" | "b", number>> = {}; partial.a! += 0; partial["b"] = 1; return partial.b! + 1;
-----
const partial                                     = {}; partial.a  += 0; partial["b"] = 1; return partial.b  + 1;
=====
const x1 = 1 as unknown as string as any; const y1 = (x1 as any) ? x1 : y2!; var y2: any; return y1;
-----
const x1 = 1                            ; const y1 = (x1       ) ? x1 : y2 ; var y2     ; return y1;
=====
const asyncGen = async function* <T>(items: T[]): AsyncGenerator<T, void, unknown> { for (const item of items) yield item as T; };
const got: number[] = []; for await (const item of asyncGen<number>([1, 2])) got.push(item); return got;
-----
const asyncGen = async function*    (items     )                                   { for (const item of items) yield item     ; };
const got           = []; for await (const item of asyncGen        ([1, 2])) got.push(item); return got;
=====
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
function walk(value: Json, depth = 0): number { return Array.isArray(value) ? Math.max(depth, ...value.map((v) => walk(v, depth + 1))) : depth; }
return walk([1, [2]]);
-----

function walk(value      , depth = 0)         { return Array.isArray(value) ? Math.max(depth, ...value.map((v) => walk(v, depth + 1))) : depth; }
return walk([1, [2]]);
=====
const as = 1, type = 2, of = 3, satisfies = 4, declare = 5, namespace = 6, module = 7, abstract = 8, is = 9, keyof = 10, infer = 11, readonly = 12, async = 13, get = 14;
type
declare
return as + type + of + satisfies + declare + namespace + module + abstract + is + keyof + infer + readonly + async + get;
-----
const as = 1, type = 2, of = 3, satisfies = 4, declare = 5, namespace = 6, module = 7, abstract = 8, is = 9, keyof = 10, infer = 11, readonly = 12, async = 13, get = 14;
type
declare
return as + type + of + satisfies + declare + namespace + module + abstract + is + keyof + infer + readonly + async + get;
=====
const obj = { type: 1, as: 2, interface: 3, enum: 4, declare: 5, get: 6, set: 7, async: 8, static: 9, readonly: 10, await: 11, new: 12 }; return obj.type + obj.as + obj.enum + obj.new;
-----
const obj = { type: 1, as: 2, interface: 3, enum: 4, declare: 5, get: 6, set: 7, async: 8, static: 9, readonly: 10, await: 11, new: 12 }; return obj.type + obj.as + obj.enum + obj.new;
=====
namespace OnlyTypes { export interface A { b: number } export type C = A; }
const ns: OnlyTypes.A = { b: 1 }; return ns.b;
-----

const ns              = { b: 1 }; return ns.b;
=====
declare global { interface Window { x: number } }
declare module "y" { export const z: number; }
declare enum E { A }
declare namespace N { const q: number; }
return 1;
-----




return 1;
=====
const r = [1, 2, 3].filter((x): x is number => x != null).map<string>(String).join(","); return r;
-----
const r = [1, 2, 3].filter((x)              => x != null).map        (String).join(","); return r;
=====
const h = ((a: number, b?: string) => [a, b] as const)(1); return h;
-----
const h = ((a        , b         ) => [a, b]         )(1); return h;
=====
const dictionary: { [key: string]: (typeof values)[number] | undefined } = {}; const values = [1, 2] as const; return dictionary["a"] ?? null;
-----
const dictionary                                                         = {}; const values = [1, 2]         ; return dictionary["a"] ?? null;
=====
const later = (value: number | string): value is number => typeof value === "number", other2 = <U extends string = "a">(u: U) => u; return [later(1), other2("a")];
-----
const later = (value                 )                  => typeof value === "number", other2 =                         (u   ) => u; return [later(1), other2("a")];
=====
const ex = 2 ** 3 as number; const cmp = ex as number > 4; return [ex, cmp];
-----
const ex = 2 ** 3          ; const cmp = ex           > 4; return [ex, cmp];
=====
while (false as boolean) {} do { var k: number = 1 } while (k as number < 1) return k;
-----
while (false           ) {} do { var k         = 1 } while (k           < 1) return k;
=====
const divide = (a: number, b: number) => a / b / 2 as number; return divide(8, 2);
-----
const divide = (a        , b        ) => a / b / 2          ; return divide(8, 2);
=====
async function retry<T>(
  operation: () => Promise<T>,
  { attempts = 3, delay }: { attempts?: number; delay?: number } = {},
): Promise<T | undefined> {
  let last: unknown;
  for (let i = 0; i < attempts; i++) {
    try { return await operation(); } catch (e) { last = e; }
  }
  throw last instanceof Error ? last : new Error(String(last));
}
return await retry(async () => 5 as const);
-----
async function retry   (
  operation                  ,
  { attempts = 3, delay }                                        = {},
)                         {
  let last         ;
  for (let i = 0; i < attempts; i++) {
    try { return await operation(); } catch (e) { last = e; }
  }
  throw last instanceof Error ? last : new Error(String(last));
}
return await retry(async () => 5         );
=====
const comparator = <K extends string>(key: K) => (a: Record<K, number>, b: Record<K, number>): number => a[key] - b[key]; return [{ n: 2 }, { n: 1 }].sort(comparator("n"));
-----
const comparator =                   (key   ) => (a                   , b                   )         => a[key] - b[key]; return [{ n: 2 }, { n: 1 }].sort(comparator("n"));
"##;

#[test]
fn scripts_become_those_of_ts_blank_space_but_for_semicolons() {
    let mut n_snippets = 0;
    for snippet in SNIPPETS.trim_end().split("\n=====\n") {
        let (source, expected) = snippet.split_once("\n-----\n").expect("a source and a result");
        let stripped = strip(source);
        let mut lines = stripped.lines();
        for expected in expected.split('\n') {
            let line = lines.next().unwrap_or_default();
            let is_same = |(at, new): (usize, char)| match expected.chars().nth(at).unwrap_or(' ') {
                ' ' => matches!(new, ' ' | ';'),
                old => new == old || new == ' ' && old == ';',
            };
            assert!(line.chars().enumerate().all(is_same), "{source}\n{line}\n{expected}");
            assert!(line.chars().count() >= expected.chars().count(), "{source}\n{line}");
        }
        n_snippets += 1;
    }
    assert_eq!(n_snippets, 66);
}

#[test]
fn constructs_with_an_effect_at_run_time_are_reported() {
    for (source, explanation, line, column) in [
        ("enum A { B }", ENUM, 1, 1),
        ("if (a) {\n  const enum A { B }\n}", ENUM, 2, 3),
        ("export enum A { B }", EXPORT, 1, 1),
        ("namespace A { export const b = 1 }", NAMESPACE, 1, 1),
        ("namespace A { namespace B { f() } }", NAMESPACE, 1, 15),
        ("module A { let b }", NAMESPACE, 1, 1),
        ("class A { constructor(private a: A) {} }", PARAMETER_PROPERTY, 1, 23),
        ("class A {\n  constructor(a, readonly b = 1) {}\n}", PARAMETER_PROPERTY, 2, 18),
        ("/* ü */ import a from 'a'", IMPORT, 1, 9),
        ("import 'a'", IMPORT, 1, 1),
        ("import {} from 'a'", IMPORT, 1, 1),
        ("import a = require('a')", IMPORT, 1, 1),
        ("import a = b.c", IMPORT, 1, 1),
        ("import type A = require('a')", IMPORT, 1, 1),
        ("import type from 'a'", IMPORT, 1, 1),
        ("import a, { type B } from 'a'", IMPORT, 1, 1),
        ("import { type A, b } from 'a'", IMPORT, 1, 1),
        ("export const a = 1", EXPORT, 1, 1),
        ("export = a", EXPORT, 1, 1),
        ("export default a", EXPORT, 1, 1),
        ("export { a }", EXPORT, 1, 1),
        ("@a class B {}", DECORATOR, 1, 1),
        ("class A { @b c() {} }", DECORATOR, 1, 11),
        ("class A { b(@c d) {} }", DECORATOR, 1, 13),
        ("const f = () => <A>{}", ASSERTION, 1, 17),
        ("return <A>\nb", ASSERTION, 1, 8),
        ("<A>{}", ASSERTION, 1, 1),
        ("1 + 2 as number / 3", REGROUPING, 1, 7),
        ("a - b as any as number % c", REGROUPING, 1, 14),
        ("let é: \"😀\" = a; enum B {}", ENUM, 1, 17),
    ] {
        let Err(unsupported) = strip_types(source) else { panic!("{source} is stripped") };
        let found = (unsupported.construct, unsupported.advice);
        assert_eq!(found, explanation, "{source}");
        assert_eq!((unsupported.place.line, unsupported.place.column), (line, column), "{source}");
    }
    let message = strip_types("enum Color { Red }").map_err(|unsupported| unsupported.to_string());
    assert_eq!(
        message.expect_err("an enum"),
        "an `enum` is not supported in a script: it is an object at run time, not only a type; \
         write `const Color = { Red: 0, Green: 1 } as const` instead"
    );
}

#[test]
fn each_character_of_a_type_becomes_one_space() {
    check(&[
        ("let a: \"é — 😀\" = 1 // é", "let a          = 1 // é"),
        ("let a: {\r\n\tb: B\u{2028}}\r\n = 1", "let a   \r\n     \u{2028} \r\n = 1"),
        ("(a):\nÜ => a", "(a  \n) => a"),
    ]);
    // The parser reads the script in pieces, and a character may lie in two of them.
    for n in PIECE_BYTES - 16..PIECE_BYTES {
        let comment = "a".repeat(n);
        let source = format!("/*{comment}*/ let ü: \"😀\" = \"😀\"");
        assert_eq!(strip(&source), format!("/*{comment}*/ let ü      = \"😀\""));
    }
}

#[test]
fn text_that_cannot_be_read_is_returned_as_it_is() {
    check_unchanged(&[
        "let a: A = (",
        "let a: A = 'b",
        "let a: A = /b",
        "let a: A; `${b",
        "let a: A; /* b",
        "let a: A }",
        "let a: = 1",
        "let a: A b",
        "if (a: A) {}",
        "a as",
        "let a: A = 1 # 2 §",
        "type A = B C",
        "interface A { b: C",
        "f<A(b)",
        "class A { a: B c: D }",
        "a b: C",
        "(a: A)",
        "let a: [A) = 1",
        "a ? b",
        "\0",
        "a as A.b()",
    ]);
}

#[test]
fn text_that_typescript_reads_differently_is_returned_as_it_is() {
    check_unchanged(&[
        "a = b as A\n[c]",
        "class A { a = b as B\n [c]() {} }",
        "a as A (b)",
        "interface\nA\n{}",
        "abstract\nclass A {}",
        "a /*\n*/ !(b)",
        "a<b||c>(d); a<(1)&&b>(2)",
    ]);
}

/// Returns texts of about 16 KiB that nest deeply, or that have many readings.
fn hostile_texts() -> impl Iterator<Item = String> {
    const BYTES: usize = 16 * 1024;
    let repeated = [
        "(",
        "[",
        "{",
        "<",
        "({a:",
        "a?b:",
        "a?(b):",
        "A<",
        "x=>",
        "(a=(b)=>",
        "!",
        "typeof ",
        "`${",
        "if(a);else ",
        "if(a)",
        "a=",
        "function f(){",
        "class A{m(){",
        "<T>",
        "async(",
        "new ",
        "a,",
        "a(",
        "a as ",
        "a<b,",
        "f<T>(",
        "a?.(",
        "a:",
        "()=>{",
        "a?(b):c=>",
        "/[",
        "async(a)=>",
        "await ",
        "yield ",
        "(a):b=>",
        "a<b>(c)",
        "\\u{",
        "<<",
        "a\n",
        "?.",
        "@",
        "#",
    ];
    let types = ["A<", "keyof ", "[", "(x:", "A extends B?", "{b:", "`${", "()=>", "A|", "<T>("];
    let closed = [("(", "a", ")"), ("{", "", "}"), ("a?", "b", ":c"), ("a?(b,", "c", ")=>d:e")];
    let closed_types = [("A<", "B", ">"), ("(a:", "B", ")=>C"), ("[", "A", "]")];
    let fill = |text: &str| text.repeat(BYTES / text.len());
    let nest = |(open, inner, close): (&str, &str, &str)| {
        let n = BYTES / (open.len() + close.len());
        [&open.repeat(n), inner, &close.repeat(n)].concat()
    };
    let values = repeated.map(fill).into_iter().chain(closed.map(nest));
    let types = types.map(fill).into_iter().chain(closed_types.map(nest));
    values.chain(types.map(|text| format!("let a: {text} = 1")))
}

#[test]
fn hostile_text_neither_panics_nor_changes_its_length() {
    for text in hostile_texts() {
        let stripped = strip_types(&text);
        let length = stripped.map_or(text.len(), |stripped| stripped.len());
        assert_eq!(length, text.len());
    }
}

#[test]
fn each_bound_stops_the_parser() {
    let statement = "const sum: number = await add(first, second) as number;\n";
    let script = statement.repeat(SOURCE_BYTES_MAX / statement.len());
    assert!(strip(&script).starts_with("const sum         = await add"), "the longest script");
    let too_long = script + statement;
    let brackets = |n: usize| format!("let a: A = {};", "f<B>(c);".repeat(n));
    assert!(strip(&brackets(ANGLE_BRACKETS_MAX)).starts_with("let a    = f   (c);"));
    // The lexer reads all comments up to the next token once for each of them.
    let comments = |n: usize| format!("let a: A = b\n{}+ c", "//\n".repeat(n));
    assert!(strip(&comments(1000)).starts_with("let a    = b\n"));
    for (bound, text) in [
        ("length", too_long),
        ("angle brackets", brackets(ANGLE_BRACKETS_MAX + 1)),
        ("angle brackets", "a<b,".repeat(12_800)),
        ("bytes read", comments(20_000)),
        ("bytes read", "/[".repeat(25_000)),
        ("reports", format!("let a: A = [{}];", "1,".repeat(45_000))),
    ] {
        assert!(parse(&text).is_none(), "{bound}");
        assert!(matches!(strip_types(&text), Ok(Cow::Borrowed(_))), "{bound}");
    }
}

/// Returns expressions of JavaScript, with brackets around most operands.
fn javascript_expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b.c", "1", "'x: y'", "`t${u}`", "/[<>]/g", "null", "this", "as", "type", "f()", "~b",
        "é",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(5, 40, 3, |inner| {
        let operator = prop::sample::select(vec![
            " + ", " < ", " > ", " >> ", " && ", " ?? ", ", ", " in ", " === ", " <= ", " ** ",
        ]);
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (operator, two.clone())
                .prop_map(|(operator, (a, b))| format!("(({a}){operator}({b}))")),
            (inner.clone(), two.clone()).prop_map(|(a, (b, c))| format!("(({a}) ? ({b}) : ({c}))")),
            two.clone().prop_map(|(a, b)| format!("f({a}, {b})")),
            two.clone()
                .prop_map(|(a, b)| format!("({{ a: {a}, [{b}]: 1, b() {{ return {a} }} }})")),
            two.clone().prop_map(|(a, b)| format!("[{a}, ...({b})]")),
            two.clone().prop_map(|(a, b)| format!("((a, {{ b: c = {a} }}) => ({b}))")),
            two.clone().prop_map(|(a, b)| format!("(async (a = {a}) => {{ await ({b})\n}})")),
            two.clone().prop_map(|(a, b)| format!("(a < b > ({a}), a <\n{b})")),
            two.prop_map(|(a, b)| format!("(class {{ static a = {a}; #b = {b}; get c() {{}} }})")),
            inner.clone().prop_map(|a| format!("(!({a}))")),
            inner.clone().prop_map(|a| format!("(function* () {{ yield ({a}) }})")),
            inner.prop_map(|a| format!("({a})?.b?.[0]")),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_keeps_its_length_and_its_lines(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "a", "A", "(", ")", "[", "]", "{", "}", "<", ">", "=>", ":", "?", ",", ";", "\n", "=",
                " as A", "let ", "type ", "class ", "function ", "async ", "enum ", "`", "${", "/", "é",
                "interface ", "declare ", "private ", ": A", "<T>", "!", "return ", "static ", "...",
                "\u{feff}", "\r\n", "\0", "//", "let a: 'é😀' = ", "namespace ", "this: A", "import ",
            ]),
            0..60,
        ),
    ) {
        let source = pieces.concat();
        if let Ok(stripped) = strip_types(&source) {
            prop_assert_eq!(stripped.chars().count(), source.chars().count());
            for (old, new) in source.chars().zip(stripped.chars()) {
                prop_assert_eq!(is_line_break(old), is_line_break(new));
                prop_assert!(old == new || matches!(new, ' ' | ';' | '(' | ')'));
            }
        }
    }

    #[test]
    fn types_of_generated_scripts_become_spaces(
        expressions in prop::collection::vec(javascript_expression(), 1..4),
    ) {
        let typed = |text: &String| format!("let a: A<'é'> = {text} as B;\n");
        let plain = |text: &String| format!("let a         = {text}     ;\n");
        let source: String = expressions.iter().map(typed).collect();
        let expected: String = expressions.iter().map(plain).collect();
        prop_assert_eq!(strip(&source), expected);
    }

    #[test]
    fn generated_javascript_is_returned_without_a_copy(
        expressions in prop::collection::vec(javascript_expression(), 1..4),
        end in prop::sample::select(vec![";", "\n", " // c\n", " /* c */;\n"]),
    ) {
        let line = |text: &String| format!("x = {text}{end}return {text}{end}");
        let source: String = expressions.iter().map(line).collect();
        prop_assert!(parse(&source).is_some(), "{}", source);
        prop_assert!(matches!(strip_types(&source), Ok(Cow::Borrowed(_))), "{}", source);
    }
}
