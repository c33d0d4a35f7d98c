#[doc = "Interfaces of the package `shapes`."]
#[allow(missing_docs, unused_qualifications, clippy::all, rustdoc::all, reason = "generated from interface definitions")]
pub mod shapes {
#[doc = "Messages of the package `shapes`."]
pub mod msg {
use ::tsuji_msg::generated as g;

#[doc = "`shapes/msg/Arrays`"]
#[derive(Clone, Debug, PartialEq)]
pub struct Arrays {
    pub bools: [bool; 3],
    pub bytes: g::Vec<u8>,
    pub data: g::Vec<u8>,
    pub small: g::Vec<i8>,
    pub five: [u16; 5],
    pub floats: g::Vec<f32>,
    pub matrix: [f64; 40],
    pub ids: g::Vec<u64>,
    pub letters: [u8; 2],
    pub flags: g::Vec<bool>,
    pub page: [u8; 2000],
    pub ints: [i32; 300],
}

impl g::Default for Arrays {
    fn default() -> Self {
        Self {
            bools: [true, false, true],
            bytes: g::Default::default(),
            data: g::Vec::from([1, 2, 255]),
            small: g::Default::default(),
            five: g::Default::default(),
            floats: g::Default::default(),
            matrix: [0.0; 40],
            ids: g::Default::default(),
            letters: g::Default::default(),
            flags: g::Default::default(),
            page: [0; 2000],
            ints: [0; 300],
        }
    }
}

#[doc = "`shapes/msg/Arrays` in place."]
#[derive(Clone, Debug)]
pub struct ArraysView<'a> {
    pub bools: [bool; 3],
    pub bytes: &'a [u8],
    pub data: &'a [u8],
    pub small: &'a [i8],
    pub five: [u16; 5],
    pub floats: g::ArrayView<'a, f32>,
    pub matrix: [f64; 40],
    pub ids: g::ArrayView<'a, u64>,
    pub letters: [u8; 2],
    pub flags: &'a [bool],
    pub page: &'a [u8],
    pub ints: g::ArrayView<'a, i32>,
}

impl ArraysView<'_> {
    #[doc = "A copy as a value."]
    pub fn to_message(&self) -> Arrays {
        <Arrays as g::Wire>::from_view(self)
    }
}

impl g::Wire for Arrays {
    type View<'a> = ArraysView<'a>;
    const MIN_SIZE: usize = 3559;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("bools", &self.bools)?;
        w.field("bytes", &self.bytes)?;
        w.field("data", &self.data)?;
        w.bounded_field("small", &self.small, g::bounds(g::Option::Some(4), g::Option::None))?;
        w.field("five", &self.five)?;
        w.field("floats", &self.floats)?;
        w.field("matrix", &self.matrix)?;
        w.bounded_field("ids", &self.ids, g::bounds(g::Option::Some(3), g::Option::None))?;
        w.field("letters", &self.letters)?;
        w.field("flags", &self.flags)?;
        w.field("page", &self.page)?;
        w.field("ints", &self.ints)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            bools: r.field("bools")?,
            bytes: r.field("bytes")?,
            data: r.field("data")?,
            small: r.bounded_field("small", g::bounds(g::Option::Some(4), g::Option::None))?,
            five: r.field("five")?,
            floats: r.field("floats")?,
            matrix: r.field("matrix")?,
            ids: r.bounded_field("ids", g::bounds(g::Option::Some(3), g::Option::None))?,
            letters: r.field("letters")?,
            flags: r.field("flags")?,
            page: r.field("page")?,
            ints: r.field("ints")?,
        })
    }

    #[inline]
    fn as_view(&self) -> ArraysView<'_> {
        ArraysView {
            bools: self.bools,
            bytes: g::Wire::as_view(&self.bytes),
            data: g::Wire::as_view(&self.data),
            small: g::Wire::as_view(&self.small),
            five: self.five,
            floats: g::Wire::as_view(&self.floats),
            matrix: self.matrix,
            ids: g::Wire::as_view(&self.ids),
            letters: self.letters,
            flags: g::Wire::as_view(&self.flags),
            page: g::Wire::as_view(&self.page),
            ints: g::Wire::as_view(&self.ints),
        }
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<ArraysView<'a>> {
        ::core::result::Result::Ok(ArraysView {
            bools: r.field("bools")?,
            bytes: r.view_field::<g::Vec<u8>>("bytes")?,
            data: r.view_field::<g::Vec<u8>>("data")?,
            small: r.bounded_view_field::<g::Vec<i8>>("small", g::bounds(g::Option::Some(4), g::Option::None))?,
            five: r.field("five")?,
            floats: r.view_field::<g::Vec<f32>>("floats")?,
            matrix: r.field("matrix")?,
            ids: r.bounded_view_field::<g::Vec<u64>>("ids", g::bounds(g::Option::Some(3), g::Option::None))?,
            letters: r.field("letters")?,
            flags: r.view_field::<g::Vec<bool>>("flags")?,
            page: r.view_field::<[u8; 2000]>("page")?,
            ints: r.view_field::<[i32; 300]>("ints")?,
        })
    }

    #[inline]
    fn from_view(view: &ArraysView<'_>) -> Self {
        Self {
            bools: view.bools,
            bytes: g::Wire::from_view(&view.bytes),
            data: g::Wire::from_view(&view.data),
            small: g::Wire::from_view(&view.small),
            five: view.five,
            floats: g::Wire::from_view(&view.floats),
            matrix: view.matrix,
            ids: g::Wire::from_view(&view.ids),
            letters: view.letters,
            flags: g::Wire::from_view(&view.flags),
            page: g::Wire::from_view(&view.page),
            ints: g::Wire::from_view(&view.ints),
        }
    }

}

impl g::Message for Arrays {
    const TYPE_NAME: &'static str = "shapes/msg/Arrays";
    const TYPE_HASH: &'static str = "RIHS01_4ffe6877f83b850c90bb49f660a8ee608eb7881deba106de2092f553ffec4be2";
    const FIXED_SIZE: g::Option<usize> = g::Option::None;
    const DEFINITION: &'static str = "bool[3] bools [true, false, 1]\nbyte[] bytes\nuint8[] data [1, 2, 0xff]\nint8[<=4] small\nuint16[5] five\nfloat32[] floats\nfloat64[40] matrix\nuint64[<=3] ids\nchar[2] letters\nbool[] flags\nuint8[2000] page\nint32[300] ints\n";
}

#[doc = "`shapes/msg/Blob`"]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blob {
    pub origin: Point,
    pub samples: g::Vec<u16>,
    pub unit: g::String,
    pub after: u8,
}

#[doc = "`shapes/msg/Blob` in place."]
#[derive(Clone, Debug)]
pub struct BlobView<'a> {
    pub origin: Point,
    pub samples: g::ArrayView<'a, u16>,
    pub unit: &'a str,
    pub after: u8,
}

impl BlobView<'_> {
    #[doc = "A copy as a value."]
    pub fn to_message(&self) -> Blob {
        <Blob as g::Wire>::from_view(self)
    }
}

impl g::Wire for Blob {
    type View<'a> = BlobView<'a>;
    const MIN_SIZE: usize = 22;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("origin", &self.origin)?;
        w.field("samples", &self.samples)?;
        w.field("unit", &self.unit)?;
        w.field("after", &self.after)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            origin: r.field("origin")?,
            samples: r.field("samples")?,
            unit: r.field("unit")?,
            after: r.field("after")?,
        })
    }

    #[inline]
    fn as_view(&self) -> BlobView<'_> {
        BlobView {
            origin: self.origin,
            samples: g::Wire::as_view(&self.samples),
            unit: g::Wire::as_view(&self.unit),
            after: self.after,
        }
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<BlobView<'a>> {
        ::core::result::Result::Ok(BlobView {
            origin: r.field("origin")?,
            samples: r.view_field::<g::Vec<u16>>("samples")?,
            unit: r.view_field::<g::String>("unit")?,
            after: r.field("after")?,
        })
    }

    #[inline]
    fn from_view(view: &BlobView<'_>) -> Self {
        Self {
            origin: view.origin,
            samples: g::Wire::from_view(&view.samples),
            unit: g::Wire::from_view(&view.unit),
            after: view.after,
        }
    }

}

impl g::Message for Blob {
    const TYPE_NAME: &'static str = "shapes/msg/Blob";
    const TYPE_HASH: &'static str = "RIHS01_c1afb26e4e809ad14203219e1bf14fb0878c8a72004e98fdb5dd5ce0081e74bf";
    const FIXED_SIZE: g::Option<usize> = g::Option::None;
    const DEFINITION: &'static str = "Point origin\nuint16[] samples\nstring unit\nuint8 after\n================================================================================\nMSG: shapes/Point\nuint8 tag\nfloat64 x\nfloat32 y\n";
}

impl g::InPlace for Blob {
    type Item = u16;

    fn write_around<S: g::Sink>(&self, len: usize, w: &mut g::Writer<S>) -> g::Result<g::Range<usize>> {
        w.field("origin", &self.origin)?;
        w.length(len)?;
        let range = w.room::<u16>(len)?;
        w.field("unit", &self.unit)?;
        w.field("after", &self.after)?;
        ::core::result::Result::Ok(range)
    }
}

#[doc = "`shapes/msg/Empty`"]
#[doc = ""]
#[doc = " Holds nothing."]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Empty {
}

impl g::Wire for Empty {
    type View<'a> = Self;
    const MIN_SIZE: usize = 1;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.scalar(0u8)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        r.scalar::<u8>()?;
        ::core::result::Result::Ok(Self {
        })
    }

    #[inline]
    fn as_view(&self) -> Self {
        *self
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<Self> {
        <Self as g::Wire>::read(r)
    }
    #[inline]
    fn from_view(view: &Self) -> Self {
        *view
    }
}

impl g::Message for Empty {
    const TYPE_NAME: &'static str = "shapes/msg/Empty";
    const TYPE_HASH: &'static str = "RIHS01_4efaa77624b0fbd8b67ef306e7aaa440efa6c4e74e69c9528837c3874d9bf748";
    const FIXED_SIZE: g::Option<usize> = g::Option::Some(5);
    const DEFINITION: &'static str = "# Holds nothing.\n";
}

#[doc = "`shapes/msg/Keywords`"]
#[doc = ""]
#[doc = " Names that Rust keeps for itself."]
#[derive(Clone, Debug, PartialEq)]
pub struct Keywords {
    pub r#type: u8,
    pub r#match: bool,
    pub self_: g::String,
    pub crate_: i32,
    pub r#async: f64,
    pub r#fn: g::Vec<u8>,
}

impl g::Default for Keywords {
    fn default() -> Self {
        Self {
            r#type: g::Default::default(),
            r#match: g::Default::default(),
            self_: g::Default::default(),
            crate_: 5,
            r#async: g::Default::default(),
            r#fn: g::Default::default(),
        }
    }
}

impl Keywords {
    pub const TYPE: u8 = 1;
    pub const NAME: &'static str = "x";
    pub const FAR: f32 = f32::INFINITY;
}

#[doc = "`shapes/msg/Keywords` in place."]
#[derive(Clone, Debug)]
pub struct KeywordsView<'a> {
    pub r#type: u8,
    pub r#match: bool,
    pub self_: &'a str,
    pub crate_: i32,
    pub r#async: f64,
    pub r#fn: &'a [u8],
}

impl KeywordsView<'_> {
    #[doc = "A copy as a value."]
    pub fn to_message(&self) -> Keywords {
        <Keywords as g::Wire>::from_view(self)
    }
}

impl g::Wire for Keywords {
    type View<'a> = KeywordsView<'a>;
    const MIN_SIZE: usize = 22;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("type", &self.r#type)?;
        w.field("match", &self.r#match)?;
        w.field("self", &self.self_)?;
        w.field("crate", &self.crate_)?;
        w.field("async", &self.r#async)?;
        w.field("fn", &self.r#fn)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            r#type: r.field("type")?,
            r#match: r.field("match")?,
            self_: r.field("self")?,
            crate_: r.field("crate")?,
            r#async: r.field("async")?,
            r#fn: r.field("fn")?,
        })
    }

    #[inline]
    fn as_view(&self) -> KeywordsView<'_> {
        KeywordsView {
            r#type: self.r#type,
            r#match: self.r#match,
            self_: g::Wire::as_view(&self.self_),
            crate_: self.crate_,
            r#async: self.r#async,
            r#fn: g::Wire::as_view(&self.r#fn),
        }
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<KeywordsView<'a>> {
        ::core::result::Result::Ok(KeywordsView {
            r#type: r.field("type")?,
            r#match: r.field("match")?,
            self_: r.view_field::<g::String>("self")?,
            crate_: r.field("crate")?,
            r#async: r.field("async")?,
            r#fn: r.view_field::<g::Vec<u8>>("fn")?,
        })
    }

    #[inline]
    fn from_view(view: &KeywordsView<'_>) -> Self {
        Self {
            r#type: view.r#type,
            r#match: view.r#match,
            self_: g::Wire::from_view(&view.self_),
            crate_: view.crate_,
            r#async: view.r#async,
            r#fn: g::Wire::from_view(&view.r#fn),
        }
    }

}

impl g::Message for Keywords {
    const TYPE_NAME: &'static str = "shapes/msg/Keywords";
    const TYPE_HASH: &'static str = "RIHS01_ec59eb25e07956104cf8274fb17e408f06b01416685fd49c482860fce78ed7ee";
    const FIXED_SIZE: g::Option<usize> = g::Option::None;
    const DEFINITION: &'static str = "# Names that Rust keeps for itself.\nuint8 TYPE=1\nstring NAME='x'\nfloat32 FAR=inf\nuint8 type\nbool match\nstring self\nint32 crate 5\nfloat64 async\nuint8[] fn\n";
}

impl g::InPlace for Keywords {
    type Item = u8;

    fn write_around<S: g::Sink>(&self, len: usize, w: &mut g::Writer<S>) -> g::Result<g::Range<usize>> {
        w.field("type", &self.r#type)?;
        w.field("match", &self.r#match)?;
        w.field("self", &self.self_)?;
        w.field("crate", &self.crate_)?;
        w.field("async", &self.r#async)?;
        w.length(len)?;
        let range = w.room::<u8>(len)?;
        ::core::result::Result::Ok(range)
    }
}

#[doc = "`shapes/msg/Nested`"]
#[derive(Clone, Debug, PartialEq)]
pub struct Nested {
    pub scalars: Scalars,
    pub empty: Empty,
    pub empties: g::Vec<Empty>,
    pub two: [Scalars; 2],
    pub texts: g::Vec<Texts>,
    pub arrays: g::Vec<Arrays>,
    pub points: g::Vec<Point>,
    pub triangle: [Point; 3],
    pub point: Point,
    pub forty: [Empty; 40],
}

impl g::Default for Nested {
    fn default() -> Self {
        Self {
            scalars: g::Default::default(),
            empty: g::Default::default(),
            empties: g::Default::default(),
            two: g::Default::default(),
            texts: g::Default::default(),
            arrays: g::Default::default(),
            points: g::Default::default(),
            triangle: g::Default::default(),
            point: g::Default::default(),
            forty: ::core::array::from_fn(|_| g::Default::default()),
        }
    }
}

#[doc = "`shapes/msg/Nested` in place."]
#[derive(Clone, Debug)]
pub struct NestedView<'a> {
    pub scalars: Scalars,
    pub empty: Empty,
    pub empties: g::SeqView<'a, Empty>,
    pub two: g::SeqView<'a, Scalars>,
    pub texts: g::SeqView<'a, Texts>,
    pub arrays: g::SeqView<'a, Arrays>,
    pub points: g::SeqView<'a, Point>,
    pub triangle: g::SeqView<'a, Point>,
    pub point: Point,
    pub forty: g::SeqView<'a, Empty>,
}

impl NestedView<'_> {
    #[doc = "A copy as a value."]
    pub fn to_message(&self) -> Nested {
        <Nested as g::Wire>::from_view(self)
    }
}

impl g::Wire for Nested {
    type View<'a> = NestedView<'a>;
    const MIN_SIZE: usize = 244;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("scalars", &self.scalars)?;
        w.field("empty", &self.empty)?;
        w.field("empties", &self.empties)?;
        w.field("two", &self.two)?;
        w.field("texts", &self.texts)?;
        w.bounded_field("arrays", &self.arrays, g::bounds(g::Option::Some(2), g::Option::None))?;
        w.field("points", &self.points)?;
        w.field("triangle", &self.triangle)?;
        w.field("point", &self.point)?;
        w.field("forty", &self.forty)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            scalars: r.field("scalars")?,
            empty: r.field("empty")?,
            empties: r.field("empties")?,
            two: r.field("two")?,
            texts: r.field("texts")?,
            arrays: r.bounded_field("arrays", g::bounds(g::Option::Some(2), g::Option::None))?,
            points: r.field("points")?,
            triangle: r.field("triangle")?,
            point: r.field("point")?,
            forty: r.field("forty")?,
        })
    }

    #[inline]
    fn as_view(&self) -> NestedView<'_> {
        NestedView {
            scalars: self.scalars,
            empty: self.empty,
            empties: g::Wire::as_view(&self.empties),
            two: g::Wire::as_view(&self.two),
            texts: g::Wire::as_view(&self.texts),
            arrays: g::Wire::as_view(&self.arrays),
            points: g::Wire::as_view(&self.points),
            triangle: g::Wire::as_view(&self.triangle),
            point: self.point,
            forty: g::Wire::as_view(&self.forty),
        }
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<NestedView<'a>> {
        ::core::result::Result::Ok(NestedView {
            scalars: r.field("scalars")?,
            empty: r.field("empty")?,
            empties: r.view_field::<g::Vec<Empty>>("empties")?,
            two: r.view_field::<[Scalars; 2]>("two")?,
            texts: r.view_field::<g::Vec<Texts>>("texts")?,
            arrays: r.bounded_view_field::<g::Vec<Arrays>>("arrays", g::bounds(g::Option::Some(2), g::Option::None))?,
            points: r.view_field::<g::Vec<Point>>("points")?,
            triangle: r.view_field::<[Point; 3]>("triangle")?,
            point: r.field("point")?,
            forty: r.view_field::<[Empty; 40]>("forty")?,
        })
    }

    #[inline]
    fn from_view(view: &NestedView<'_>) -> Self {
        Self {
            scalars: view.scalars,
            empty: view.empty,
            empties: g::Wire::from_view(&view.empties),
            two: g::Wire::from_view(&view.two),
            texts: g::Wire::from_view(&view.texts),
            arrays: g::Wire::from_view(&view.arrays),
            points: g::Wire::from_view(&view.points),
            triangle: g::Wire::from_view(&view.triangle),
            point: view.point,
            forty: g::Wire::from_view(&view.forty),
        }
    }

}

impl g::Message for Nested {
    const TYPE_NAME: &'static str = "shapes/msg/Nested";
    const TYPE_HASH: &'static str = "RIHS01_9384efd48c11d5af490ca0f5c27ffffd6cf1e1bcd28718a83abc8006a0068d01";
    const FIXED_SIZE: g::Option<usize> = g::Option::None;
    const DEFINITION: &'static str = "Scalars scalars\nEmpty empty\nEmpty[] empties\nScalars[2] two\nTexts[] texts\nArrays[<=2] arrays\nPoint[] points\nPoint[3] triangle\nPoint point\nEmpty[40] forty\n================================================================================\nMSG: shapes/Arrays\nbool[3] bools [true, false, 1]\nbyte[] bytes\nuint8[] data [1, 2, 0xff]\nint8[<=4] small\nuint16[5] five\nfloat32[] floats\nfloat64[40] matrix\nuint64[<=3] ids\nchar[2] letters\nbool[] flags\nuint8[2000] page\nint32[300] ints\n================================================================================\nMSG: shapes/Empty\n# Holds nothing.\n================================================================================\nMSG: shapes/Point\nuint8 tag\nfloat64 x\nfloat32 y\n================================================================================\nMSG: shapes/Scalars\nbool a_bool true\nbyte a_byte 7\nchar a_char 99\nint8 i8 -8\nuint8 u8 8\nint16 i16 -16\nuint16 u16 16\nint32 i32 -32\nuint32 u32 32\nint64 i64 -64\nuint64 u64 18446744073709551615\nfloat32 f32 0.5\nfloat64 f64 1e300\n================================================================================\nMSG: shapes/Texts\nstring plain \"hello # world\"\nstring<=10 short 'it\\'s'\nwstring wide \"日本\"\nwstring<=4 wide_short\nstring[] many ['a', \"b, c\"]\nstring<=3[<=2] bounded\nstring[2] pair\nwstring[] wides\nstring<=5[2] short_pair\n";
}

#[doc = "`shapes/msg/Point`"]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub tag: u8,
    pub x: f64,
    pub y: f32,
}

impl g::Wire for Point {
    type View<'a> = Self;
    const MIN_SIZE: usize = 13;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("tag", &self.tag)?;
        w.field("x", &self.x)?;
        w.field("y", &self.y)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            tag: r.field("tag")?,
            x: r.field("x")?,
            y: r.field("y")?,
        })
    }

    #[inline]
    fn as_view(&self) -> Self {
        *self
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<Self> {
        <Self as g::Wire>::read(r)
    }
    #[inline]
    fn from_view(view: &Self) -> Self {
        *view
    }
}

impl g::Message for Point {
    const TYPE_NAME: &'static str = "shapes/msg/Point";
    const TYPE_HASH: &'static str = "RIHS01_91a2d097931ac6e7d79f5dd5b07281f8571f2f72404ad391d329a091c37588c3";
    const FIXED_SIZE: g::Option<usize> = g::Option::Some(24);
    const DEFINITION: &'static str = "uint8 tag\nfloat64 x\nfloat32 y\n";
}

#[doc = "`shapes/msg/Scalars`"]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalars {
    pub a_bool: bool,
    pub a_byte: u8,
    pub a_char: u8,
    pub i8: i8,
    pub u8: u8,
    pub i16: i16,
    pub u16: u16,
    pub i32: i32,
    pub u32: u32,
    pub i64: i64,
    pub u64: u64,
    pub f32: f32,
    pub f64: f64,
}

impl g::Default for Scalars {
    fn default() -> Self {
        Self {
            a_bool: true,
            a_byte: 7,
            a_char: 99,
            i8: -8,
            u8: 8,
            i16: -16,
            u16: 16,
            i32: -32,
            u32: 32,
            i64: -64,
            u64: 18446744073709551615,
            f32: 0.5,
            f64: 1e300,
        }
    }
}

impl g::Wire for Scalars {
    type View<'a> = Self;
    const MIN_SIZE: usize = 45;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("a_bool", &self.a_bool)?;
        w.field("a_byte", &self.a_byte)?;
        w.field("a_char", &self.a_char)?;
        w.field("i8", &self.i8)?;
        w.field("u8", &self.u8)?;
        w.field("i16", &self.i16)?;
        w.field("u16", &self.u16)?;
        w.field("i32", &self.i32)?;
        w.field("u32", &self.u32)?;
        w.field("i64", &self.i64)?;
        w.field("u64", &self.u64)?;
        w.field("f32", &self.f32)?;
        w.field("f64", &self.f64)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            a_bool: r.field("a_bool")?,
            a_byte: r.field("a_byte")?,
            a_char: r.field("a_char")?,
            i8: r.field("i8")?,
            u8: r.field("u8")?,
            i16: r.field("i16")?,
            u16: r.field("u16")?,
            i32: r.field("i32")?,
            u32: r.field("u32")?,
            i64: r.field("i64")?,
            u64: r.field("u64")?,
            f32: r.field("f32")?,
            f64: r.field("f64")?,
        })
    }

    #[inline]
    fn as_view(&self) -> Self {
        *self
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<Self> {
        <Self as g::Wire>::read(r)
    }
    #[inline]
    fn from_view(view: &Self) -> Self {
        *view
    }
}

impl g::Message for Scalars {
    const TYPE_NAME: &'static str = "shapes/msg/Scalars";
    const TYPE_HASH: &'static str = "RIHS01_d9c0caf27b9faefb3681de0048d84396b77e5c19ced12e9aadbe44e661958e87";
    const FIXED_SIZE: g::Option<usize> = g::Option::Some(60);
    const DEFINITION: &'static str = "bool a_bool true\nbyte a_byte 7\nchar a_char 99\nint8 i8 -8\nuint8 u8 8\nint16 i16 -16\nuint16 u16 16\nint32 i32 -32\nuint32 u32 32\nint64 i64 -64\nuint64 u64 18446744073709551615\nfloat32 f32 0.5\nfloat64 f64 1e300\n";
}

#[doc = "`shapes/msg/Texts`"]
#[derive(Clone, Debug, PartialEq)]
pub struct Texts {
    pub plain: g::String,
    pub short: g::String,
    pub wide: g::WString,
    pub wide_short: g::WString,
    pub many: g::Vec<g::String>,
    pub bounded: g::Vec<g::String>,
    pub pair: [g::String; 2],
    pub wides: g::Vec<g::WString>,
    pub short_pair: [g::String; 2],
}

impl g::Default for Texts {
    fn default() -> Self {
        Self {
            plain: g::String::from("hello # world"),
            short: g::String::from("it's"),
            wide: g::WString::from("日本"),
            wide_short: g::Default::default(),
            many: g::Vec::from([g::String::from("a"), g::String::from("b, c")]),
            bounded: g::Default::default(),
            pair: g::Default::default(),
            wides: g::Default::default(),
            short_pair: g::Default::default(),
        }
    }
}

#[doc = "`shapes/msg/Texts` in place."]
#[derive(Clone, Debug)]
pub struct TextsView<'a> {
    pub plain: &'a str,
    pub short: &'a str,
    pub wide: g::Cow<'a, str>,
    pub wide_short: g::Cow<'a, str>,
    pub many: g::SeqView<'a, g::String>,
    pub bounded: g::SeqView<'a, g::String>,
    pub pair: g::SeqView<'a, g::String>,
    pub wides: g::SeqView<'a, g::WString>,
    pub short_pair: g::SeqView<'a, g::String>,
}

impl TextsView<'_> {
    #[doc = "A copy as a value."]
    pub fn to_message(&self) -> Texts {
        <Texts as g::Wire>::from_view(self)
    }
}

impl g::Wire for Texts {
    type View<'a> = TextsView<'a>;
    const MIN_SIZE: usize = 44;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("plain", &self.plain)?;
        w.bounded_field("short", &self.short, g::bounds(g::Option::None, g::Option::Some(10)))?;
        w.field("wide", &self.wide)?;
        w.bounded_field("wide_short", &self.wide_short, g::bounds(g::Option::None, g::Option::Some(4)))?;
        w.field("many", &self.many)?;
        w.bounded_field("bounded", &self.bounded, g::bounds(g::Option::Some(2), g::Option::Some(3)))?;
        w.field("pair", &self.pair)?;
        w.field("wides", &self.wides)?;
        w.bounded_field("short_pair", &self.short_pair, g::bounds(g::Option::None, g::Option::Some(5)))
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            plain: r.field("plain")?,
            short: r.bounded_field("short", g::bounds(g::Option::None, g::Option::Some(10)))?,
            wide: r.field("wide")?,
            wide_short: r.bounded_field("wide_short", g::bounds(g::Option::None, g::Option::Some(4)))?,
            many: r.field("many")?,
            bounded: r.bounded_field("bounded", g::bounds(g::Option::Some(2), g::Option::Some(3)))?,
            pair: r.field("pair")?,
            wides: r.field("wides")?,
            short_pair: r.bounded_field("short_pair", g::bounds(g::Option::None, g::Option::Some(5)))?,
        })
    }

    #[inline]
    fn as_view(&self) -> TextsView<'_> {
        TextsView {
            plain: g::Wire::as_view(&self.plain),
            short: g::Wire::as_view(&self.short),
            wide: g::Wire::as_view(&self.wide),
            wide_short: g::Wire::as_view(&self.wide_short),
            many: g::Wire::as_view(&self.many),
            bounded: g::Wire::as_view(&self.bounded),
            pair: g::Wire::as_view(&self.pair),
            wides: g::Wire::as_view(&self.wides),
            short_pair: g::Wire::as_view(&self.short_pair),
        }
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<TextsView<'a>> {
        ::core::result::Result::Ok(TextsView {
            plain: r.view_field::<g::String>("plain")?,
            short: r.bounded_view_field::<g::String>("short", g::bounds(g::Option::None, g::Option::Some(10)))?,
            wide: r.view_field::<g::WString>("wide")?,
            wide_short: r.bounded_view_field::<g::WString>("wide_short", g::bounds(g::Option::None, g::Option::Some(4)))?,
            many: r.view_field::<g::Vec<g::String>>("many")?,
            bounded: r.bounded_view_field::<g::Vec<g::String>>("bounded", g::bounds(g::Option::Some(2), g::Option::Some(3)))?,
            pair: r.view_field::<[g::String; 2]>("pair")?,
            wides: r.view_field::<g::Vec<g::WString>>("wides")?,
            short_pair: r.bounded_view_field::<[g::String; 2]>("short_pair", g::bounds(g::Option::None, g::Option::Some(5)))?,
        })
    }

    #[inline]
    fn from_view(view: &TextsView<'_>) -> Self {
        Self {
            plain: g::Wire::from_view(&view.plain),
            short: g::Wire::from_view(&view.short),
            wide: g::Wire::from_view(&view.wide),
            wide_short: g::Wire::from_view(&view.wide_short),
            many: g::Wire::from_view(&view.many),
            bounded: g::Wire::from_view(&view.bounded),
            pair: g::Wire::from_view(&view.pair),
            wides: g::Wire::from_view(&view.wides),
            short_pair: g::Wire::from_view(&view.short_pair),
        }
    }

}

impl g::Message for Texts {
    const TYPE_NAME: &'static str = "shapes/msg/Texts";
    const TYPE_HASH: &'static str = "RIHS01_04e35972e466975c59aef0d621d70c33b100830dd54a2a798c58c094ae7888eb";
    const FIXED_SIZE: g::Option<usize> = g::Option::None;
    const DEFINITION: &'static str = "string plain \"hello # world\"\nstring<=10 short 'it\\'s'\nwstring wide \"日本\"\nwstring<=4 wide_short\nstring[] many ['a', \"b, c\"]\nstring<=3[<=2] bounded\nstring[2] pair\nwstring[] wides\nstring<=5[2] short_pair\n";
}

}
#[doc = "Services of the package `shapes`."]
pub mod srv {
use ::tsuji_msg::generated as g;

#[doc = "The service `shapes/srv/Ask`."]
#[derive(Clone, Copy, Debug)]
pub enum Ask {}

impl g::Service for Ask {
    type Request = AskRequest;
    type Response = AskResponse;
    const TYPE_NAME: &'static str = "shapes/srv/Ask";
    const TYPE_HASH: &'static str = "RIHS01_3fa734ee93621e28ed604dc97b91e4a50a22fbedfc719d59dde9b25a50e65df4";
}

#[doc = "`shapes/srv/Ask_Request`"]
#[derive(Clone, Debug, PartialEq)]
pub struct AskRequest {
    pub question: g::String,
    pub loud: bool,
}

impl g::Default for AskRequest {
    fn default() -> Self {
        Self {
            question: g::Default::default(),
            loud: true,
        }
    }
}

#[doc = "`shapes/srv/Ask_Request` in place."]
#[derive(Clone, Debug)]
pub struct AskRequestView<'a> {
    pub question: &'a str,
    pub loud: bool,
}

impl AskRequestView<'_> {
    #[doc = "A copy as a value."]
    pub fn to_message(&self) -> AskRequest {
        <AskRequest as g::Wire>::from_view(self)
    }
}

impl g::Wire for AskRequest {
    type View<'a> = AskRequestView<'a>;
    const MIN_SIZE: usize = 5;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("question", &self.question)?;
        w.field("loud", &self.loud)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            question: r.field("question")?,
            loud: r.field("loud")?,
        })
    }

    #[inline]
    fn as_view(&self) -> AskRequestView<'_> {
        AskRequestView {
            question: g::Wire::as_view(&self.question),
            loud: self.loud,
        }
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<AskRequestView<'a>> {
        ::core::result::Result::Ok(AskRequestView {
            question: r.view_field::<g::String>("question")?,
            loud: r.field("loud")?,
        })
    }

    #[inline]
    fn from_view(view: &AskRequestView<'_>) -> Self {
        Self {
            question: g::Wire::from_view(&view.question),
            loud: view.loud,
        }
    }

}

impl g::Message for AskRequest {
    const TYPE_NAME: &'static str = "shapes/srv/Ask_Request";
    const TYPE_HASH: &'static str = "RIHS01_3d38ddd6a2e0b852ade23ab3daba2e74ee6bd49ebb7338d08e30c24b944aa58f";
    const FIXED_SIZE: g::Option<usize> = g::Option::None;
    const DEFINITION: &'static str = "string question\nbool loud true\n";
}

#[doc = "`shapes/srv/Ask_Response`"]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskResponse {
    pub answers: g::Vec<super::msg::Point>,
}

#[doc = "`shapes/srv/Ask_Response` in place."]
#[derive(Clone, Debug)]
pub struct AskResponseView<'a> {
    pub answers: g::SeqView<'a, super::msg::Point>,
}

impl AskResponseView<'_> {
    #[doc = "A copy as a value."]
    pub fn to_message(&self) -> AskResponse {
        <AskResponse as g::Wire>::from_view(self)
    }
}

impl g::Wire for AskResponse {
    type View<'a> = AskResponseView<'a>;
    const MIN_SIZE: usize = 4;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.field("answers", &self.answers)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        ::core::result::Result::Ok(Self {
            answers: r.field("answers")?,
        })
    }

    #[inline]
    fn as_view(&self) -> AskResponseView<'_> {
        AskResponseView {
            answers: g::Wire::as_view(&self.answers),
        }
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<AskResponseView<'a>> {
        ::core::result::Result::Ok(AskResponseView {
            answers: r.view_field::<g::Vec<super::msg::Point>>("answers")?,
        })
    }

    #[inline]
    fn from_view(view: &AskResponseView<'_>) -> Self {
        Self {
            answers: g::Wire::from_view(&view.answers),
        }
    }

}

impl g::Message for AskResponse {
    const TYPE_NAME: &'static str = "shapes/srv/Ask_Response";
    const TYPE_HASH: &'static str = "RIHS01_5e010bbfb49efc3e89d08cd0d75b823200b58e1e142feebc8d820b00281e8949";
    const FIXED_SIZE: g::Option<usize> = g::Option::None;
    const DEFINITION: &'static str = "Point[] answers\n================================================================================\nMSG: shapes/Point\nuint8 tag\nfloat64 x\nfloat32 y\n";
}

#[doc = "The service `shapes/srv/Nothing`."]
#[derive(Clone, Copy, Debug)]
pub enum Nothing {}

impl g::Service for Nothing {
    type Request = NothingRequest;
    type Response = NothingResponse;
    const TYPE_NAME: &'static str = "shapes/srv/Nothing";
    const TYPE_HASH: &'static str = "RIHS01_2a651a3202d1f799f05e1f539146ba21e3c2074a6b4abf69614d1942ec8a661d";
}

#[doc = "`shapes/srv/Nothing_Request`"]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NothingRequest {
}

impl g::Wire for NothingRequest {
    type View<'a> = Self;
    const MIN_SIZE: usize = 1;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.scalar(0u8)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        r.scalar::<u8>()?;
        ::core::result::Result::Ok(Self {
        })
    }

    #[inline]
    fn as_view(&self) -> Self {
        *self
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<Self> {
        <Self as g::Wire>::read(r)
    }
    #[inline]
    fn from_view(view: &Self) -> Self {
        *view
    }
}

impl g::Message for NothingRequest {
    const TYPE_NAME: &'static str = "shapes/srv/Nothing_Request";
    const TYPE_HASH: &'static str = "RIHS01_4f98cc2471dfcb06f243fa367933550fcb2305bf6140c253585f156121c8fd8c";
    const FIXED_SIZE: g::Option<usize> = g::Option::Some(5);
    const DEFINITION: &'static str = "";
}

#[doc = "`shapes/srv/Nothing_Response`"]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NothingResponse {
}

impl g::Wire for NothingResponse {
    type View<'a> = Self;
    const MIN_SIZE: usize = 1;

    #[inline]
    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {
        w.scalar(0u8)
    }

    #[inline]
    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {
        r.scalar::<u8>()?;
        ::core::result::Result::Ok(Self {
        })
    }

    #[inline]
    fn as_view(&self) -> Self {
        *self
    }

    #[inline]
    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<Self> {
        <Self as g::Wire>::read(r)
    }
    #[inline]
    fn from_view(view: &Self) -> Self {
        *view
    }
}

impl g::Message for NothingResponse {
    const TYPE_NAME: &'static str = "shapes/srv/Nothing_Response";
    const TYPE_HASH: &'static str = "RIHS01_12d981c44f4cca0988da39f47493107387320d3aa3c4e33b0ed21d065b7c8535";
    const FIXED_SIZE: g::Option<usize> = g::Option::Some(5);
    const DEFINITION: &'static str = "";
}

}
}
